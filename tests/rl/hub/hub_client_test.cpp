// The client's reading of a hub's answers, odd ones above all. A whole hub is hub_test.cpp's.
#include "rl/hub/hub_client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/expect_failure.h"
#include "tests/support/file_bytes.h"
#include "tests/support/listening_socket.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;
using support::content_of;
using support::expect_failure;

// An answer in HTTP, the last of its connection.
std::string http_answer(int status, const std::vector<std::string>& headers,
                        const std::string& body = {}) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " x\r\nConnection: close\r\n";
  for (const std::string& header : headers) text += header + "\r\n";
  return text + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Answers each request by a function of its head, one after the other.
class AnsweringSocket {
 public:
  using Answer = std::function<std::string(const std::string& head)>;

  explicit AnsweringSocket(Answer answer)
      : answer_(std::move(answer)),
        listener_(support::listen_at("127.0.0.1", 0)),
        thread_([this] { serve(); }) {}
  AnsweringSocket(const AnsweringSocket&) = delete;
  AnsweringSocket& operator=(const AnsweringSocket&) = delete;
  ~AnsweringSocket() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  std::string url() const {
    return "http://127.0.0.1:" + std::to_string(support::port_of(listener_));
  }
  std::vector<std::string> heads() const {
    const std::lock_guard lock(mutex_);
    return heads_;
  }

 private:
  void serve() {
    for (;;) {
      const runtime::FileDescriptor socket(::accept(listener_.get(), nullptr, nullptr));
      if (!socket) return;
      std::string head;
      char byte = 0;
      while (!head.ends_with("\r\n\r\n") && ::recv(socket.get(), &byte, 1, 0) == 1) head += byte;
      {
        const std::lock_guard lock(mutex_);
        heads_.push_back(head);
      }
      const std::string answer = answer_(head);
      (void)::send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }

  Answer answer_;
  mutable std::mutex mutex_;
  std::vector<std::string> heads_;
  runtime::FileDescriptor listener_;
  std::thread thread_;
};

class HubClientTest : public ::testing::Test {
 protected:
  HubOptions at(const AnsweringSocket& hub) const {
    HubOptions options;
    options.endpoint = hub.url();
    options.cache = folder_.path();
    options.attempts_max = 3;
    options.pause = std::chrono::milliseconds(1);
    return options;
  }
  Result<HubListing> listed(const AnsweringSocket& hub) {
    const HubOptions options = at(hub);
    return HubClient(options, cancelled_).list(name_);
  }
  Result<HubFile> found(const AnsweringSocket& hub) {
    const HubOptions options = at(hub);
    return HubClient(options, cancelled_).look_up(name_, commit_, "a b/c.json");
  }
  Status fetched(const AnsweringSocket& hub, const HubFile& file) {
    const HubOptions options = at(hub);
    EXPECT_TRUE(cache_.prepare().ok());
    progress_.clear();
    return HubClient(options, cancelled_)
        .download(name_, commit_, file, cache_,
                  [&](std::int64_t bytes) { progress_.push_back(bytes); });
  }
  std::string listing(const std::string& files) const {
    return R"({"sha": ")" + commit_ + R"(", "siblings": [)" + files + "]}";
  }

  const HubName name_{.repo = "org/name"};
  const std::string commit_ = std::string(39, 'a') + "0";
  support::TemporaryFolder folder_;
  const HubCache cache_{folder_.path(), "org/name"};
  std::vector<std::int64_t> progress_;
  std::atomic<bool> cancelled_{false};
};

TEST_F(HubClientTest, FilesThatWouldLeaveTheirFolderAreNotListed) {
  std::string files;
  for (const char* file : {"config.json", "/etc/passwd", "../up", "a/../../b", "a/./b", "a//b", "",
                           "a/..", "a/b.json", "..a"})
    files += std::string(files.empty() ? "" : ", ") + R"({"rfilename": ")" + file + R"("})";
  const AnsweringSocket hub(
      [&](const std::string&) { return http_answer(200, {}, listing(files)); });
  const Result<HubListing> list = listed(hub);
  ASSERT_TRUE(list.ok()) << list.status().to_string();
  EXPECT_EQ(list->commit, commit_);
  EXPECT_EQ(list->files, (std::vector<std::string>{"config.json", "a/b.json", "..a"}));
}

TEST_F(HubClientTest, AListThatIsNoHubsIsRefusedAtOnce) {
  for (const std::string& body :
       {std::string("<html>"), std::string("[]"), std::string("{}"), std::string(R"({"sha": 1})"),
        std::string(R"({"sha": "main"})"), listing("1"), listing(R"({"rfilename": 1})")}) {
    const AnsweringSocket hub([&](const std::string&) { return http_answer(200, {}, body); });
    expect_failure(listed(hub).status(), ErrorCode::kInvalidArgument, {"check HF_ENDPOINT"});
    EXPECT_EQ(hub.heads().size(), 1u) << body;
  }
}

TEST_F(HubClientTest, WhatIsNotThereIsAskedForOnce) {
  const AnsweringSocket hub([](const std::string&) { return http_answer(404, {}); });
  expect_failure(listed(hub).status(), ErrorCode::kNotFound, {"org/name: not on"});
  EXPECT_EQ(hub.heads().size(), 1u);
}

TEST_F(HubClientTest, AHubThatFailsHasSoManyAttempts) {
  const AnsweringSocket hub(
      [](const std::string&) { return http_answer(500, {"X-Error-Message: of its own"}); });
  expect_failure(listed(hub).status(), ErrorCode::kUnavailable,
                 {"HTTP 500", "of its own", "(3 attempts)"});
  EXPECT_EQ(hub.heads().size(), 3u);
}

TEST_F(HubClientTest, TimeIsGivenAsTheHubAsksUnlessItIsTooLong) {
  const AnsweringSocket soon(
      [](const std::string&) { return http_answer(429, {"Retry-After: 0"}); });
  expect_failure(listed(soon).status(), ErrorCode::kUnavailable, {"(3 attempts)"});
  EXPECT_EQ(soon.heads().size(), 3u);
  const AnsweringSocket late(
      [](const std::string&) { return http_answer(429, {"Retry-After: 61"}); });
  expect_failure(listed(late).status(), ErrorCode::kUnavailable, {"come back in 61 s"});
  EXPECT_EQ(late.heads().size(), 1u);
}

TEST_F(HubClientTest, WhatIsCancelledIsNotTriedAgain) {
  const AnsweringSocket hub([&](const std::string&) {
    cancelled_ = true;
    return http_answer(503, {"Retry-After: 60"});
  });
  EXPECT_EQ(listed(hub).status().code(), ErrorCode::kCancelled);
  EXPECT_EQ(hub.heads().size(), 1u);
}

TEST_F(HubClientTest, RedirectsEndAndLeadToHttpOnly) {
  const AnsweringSocket endless(
      [](const std::string&) { return http_answer(307, {"Location: /again"}); });
  expect_failure(listed(endless).status(), ErrorCode::kUnavailable, {"redirects without end"});
  EXPECT_EQ(endless.heads().size(), 3u * 11u);
  for (const char* to : {"ftp://127.0.0.1/x", "file:///etc/passwd", "//other/x", "x"}) {
    const AnsweringSocket away(
        [&](const std::string&) { return http_answer(302, {std::string("Location: ") + to}); });
    expect_failure(listed(away).status(), ErrorCode::kInvalidArgument, {to});
    EXPECT_EQ(away.heads().size(), 1u) << to;
  }
}

TEST_F(HubClientTest, AFilesPropertiesAreWhatTheHubItselfSays) {
  const AnsweringSocket small(
      [](const std::string&) { return http_answer(200, {R"(ETag: W/"abc")"}, "12345"); });
  const Result<HubFile> plain = found(small);
  ASSERT_TRUE(plain.ok()) << plain.status().to_string();
  EXPECT_EQ(plain->path, "a b/c.json");
  EXPECT_EQ(plain->etag, "abc");
  EXPECT_EQ(plain->bytes, 5u);
  EXPECT_TRUE(
      small.heads().at(0).starts_with("HEAD /org/name/resolve/" + commit_ + "/a%20b/c.json HTTP"))
      << small.heads()[0];
  const AnsweringSocket large([](const std::string&) {
    return http_answer(302, {"Location: http://127.0.0.1:1/elsewhere", R"(X-Linked-ETag: "def")",
                             "X-Linked-Size: 7", R"(ETag: "of the redirect")"});
  });
  const Result<HubFile> linked = found(large);
  ASSERT_TRUE(linked.ok()) << linked.status().to_string();
  EXPECT_EQ(linked->etag, "def");
  EXPECT_EQ(linked->bytes, 7u);
}

TEST_F(HubClientTest, AFileNeedsAHashThatMayBeANameAndASize) {
  const std::vector<std::vector<std::string>> lacking = {{},
                                                         {R"(ETag: "../../up")"},
                                                         {R"(ETag: "a/b")"},
                                                         {"ETag: " + std::string(129, 'a')},
                                                         {R"(ETag: "a")", "X-Linked-Size: many"},
                                                         {R"(ETag: "a")", "X-Linked-Size: -1"}};
  for (const std::vector<std::string>& headers : lacking) {
    const AnsweringSocket hub([&](const std::string&) { return http_answer(200, headers); });
    expect_failure(found(hub).status(), ErrorCode::kInvalidArgument, {"neither hash nor size"});
  }
  const AnsweringSocket elsewhere([](const std::string&) {
    return http_answer(302, {"Location: http://127.0.0.1:1/x", R"(X-Linked-ETag: "a")"}, "moved");
  });
  expect_failure(found(elsewhere).status(), ErrorCode::kInvalidArgument, {"neither hash nor size"});
}

TEST_F(HubClientTest, ABlobThatIsThereCostsNoRequest) {
  ASSERT_TRUE(cache_.prepare().ok());
  std::ofstream(cache_.blob("e")) << "there";
  const AnsweringSocket hub([](const std::string&) { return http_answer(500, {}); });
  EXPECT_TRUE(fetched(hub, {.path = "f", .etag = "e", .bytes = 5}).ok());
  EXPECT_TRUE(hub.heads().empty());
  EXPECT_EQ(progress_, std::vector<std::int64_t>{5});
}

TEST_F(HubClientTest, ABlobWithoutBytesCostsNoRequestEither) {
  const AnsweringSocket hub([](const std::string&) { return http_answer(500, {}); });
  EXPECT_TRUE(fetched(hub, {.path = "f", .etag = "e", .bytes = 0}).ok());
  EXPECT_TRUE(hub.heads().empty());
  EXPECT_TRUE(std::filesystem::exists(cache_.blob("e")));
}

TEST_F(HubClientTest, AttemptsThatBringBytesCountAsNone) {
  const std::string file = "abcdefgh";  // one byte a request, of 3 attempts at most
  const AnsweringSocket hub([&](const std::string& head) {
    const std::size_t range = head.find("Range: bytes=");
    const std::size_t from = range == head.npos ? 0 : std::stoul(head.substr(range + 13));
    const std::string where = std::to_string(from) + "-" + std::to_string(from) + "/8";
    return http_answer(from == 0 ? 200 : 206, {"Content-Range: bytes " + where},
                       file.substr(from, 1));
  });
  const Status status = fetched(hub, {.path = "f", .etag = "e", .bytes = 8});
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(content_of(cache_.blob("e")), file);
  EXPECT_EQ(hub.heads().size(), 8u);
  EXPECT_FALSE(std::filesystem::exists(cache_.incomplete("e")));
}

TEST_F(HubClientTest, AnotherPartThanAskedForIsRefusedAndForgotten) {
  ASSERT_TRUE(cache_.prepare().ok());
  std::ofstream(cache_.incomplete("e")) << "abc";
  const AnsweringSocket hub(
      [](const std::string&) { return http_answer(206, {"Content-Range: bytes 4-7/8"}, "efgh"); });
  expect_failure(fetched(hub, {.path = "f", .etag = "e", .bytes = 8}), ErrorCode::kInvalidArgument,
                 {"f: the hub sends another part of it than was asked for"});
  EXPECT_EQ(content_of(cache_.incomplete("e")), "") << "it may be another file's";
  EXPECT_FALSE(std::filesystem::exists(cache_.blob("e")));
  EXPECT_EQ(progress_, (std::vector<std::int64_t>{3, -3}));
}

TEST_F(HubClientTest, ARefusedDownloadKeepsWhatIsThere) {
  ASSERT_TRUE(cache_.prepare().ok());
  std::ofstream(cache_.incomplete("e")) << "abc";
  const AnsweringSocket hub([](const std::string&) { return http_answer(503, {}); });
  expect_failure(fetched(hub, {.path = "f", .etag = "e", .bytes = 8}), ErrorCode::kUnavailable,
                 {"what was fetched stays"});
  EXPECT_EQ(content_of(cache_.incomplete("e")), "abc");
}

}  // namespace
}  // namespace rl
