// The sources of preemption notices by themselves: a file, a command, and the endpoints of clouds.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "runtime/node/preemption_watch.h"
#include "tests/support/expect_failure.h"
#include "tests/support/metadata_server.h"
#include "tests/support/on_loop.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using support::expect_failure;
using support::http_answer;
using support::MetadataServer;

class PreemptionSourcesTest : public ::testing::Test {
 protected:
  ~PreemptionSourcesTest() override { drop(); }
  void use(std::unique_ptr<PreemptionSource> source) {
    drop();
    source_ = std::move(source);
  }
  void use(PreemptionUrl::Kind kind, const MetadataServer& server) {
    use(url_source(loop_, {kind, "127.0.0.1", server.port()}));
  }
  void drop() {
    run_on(loop_, [&] { source_.reset(); });
  }
  Result<PreemptionAnswer> ask(std::chrono::milliseconds time = 20s) {
    const Deadline deadline = deadline_after(time);
    return wait_for<PreemptionAnswer>(loop_, deadline, [&](auto done) {
      run_on(loop_, [&] { source_->ask(deadline, std::move(done)); });
    });
  }
  /// What a command says.
  Result<PreemptionAnswer> run(const std::string& command) {
    use(command_source(loop_, command));
    return ask();
  }
  static PreemptionAnswer notice(std::optional<std::chrono::milliseconds> left = {}) {
    return PreemptionNotice{"preemption", left};
  }
  void expect_answer(const PreemptionAnswer& expected) {
    const Result<PreemptionAnswer> answer = ask();
    ASSERT_TRUE(answer.ok()) << answer.status().to_string();
    EXPECT_EQ(*answer, expected);
  }

  support::TemporaryFolder folder_;
  EventLoop loop_;
  std::unique_ptr<PreemptionSource> source_;
};

TEST_F(PreemptionSourcesTest, AFileThatIsThereIsANoticeUnlessItSaysOtherwise) {
  const std::string path = folder_.file("preempted");
  use(file_source(path));
  EXPECT_EQ(source_->name(), "the file " + path);
  expect_answer({});
  std::ofstream(path).flush();
  expect_answer(notice());
  std::ofstream(path) << "none\n";
  expect_answer({});
  std::ofstream(path) << "preempted 25s\n";
  expect_answer(notice(25s));
}

TEST_F(PreemptionSourcesTest, WhatIsNoFileOrTooLongIsRefusedByName) {
  const std::string pipe = folder_.file("pipe"), large = folder_.file("large");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::ofstream(large) << std::string(kPreemptionBytesMax, ' ') << "x";
  for (const std::string& path : {pipe, large, folder_.path().string()}) {
    use(file_source(path));
    expect_failure(ask().status(), ErrorCode::kInvalidArgument, {path});
  }
  std::ofstream(large) << "preempted" << std::string(kPreemptionBytesMax - 9, ' ');
  use(file_source(large));
  expect_answer(notice());
}

TEST_F(PreemptionSourcesTest, ACommandAnswersByItsOutputWhereItSucceeds) {
  EXPECT_EQ(*run("echo noise >&2"), PreemptionAnswer());
  EXPECT_EQ(*run("echo preempted 3s"), notice(3s));
  expect_failure(run("echo preempted; exit 3").status(), ErrorCode::kUnavailable, {"code 3"});
  expect_failure(run("head -c 4097 /dev/zero").status(), ErrorCode::kInvalidArgument,
                 {"more than 4096 bytes"});
}

TEST_F(PreemptionSourcesTest, ACommandThatTakesTooLongIsKilledAndAskedAgain) {
  const std::string begun = folder_.file("begun");
  // It hangs until it has begun once, with an answer said.
  use(command_source(
      loop_, "[ -e " + begun + " ] && exit; echo preempted; touch " + begun + "; exec sleep 1000"));
  do {
    expect_failure(ask(1s).status(), ErrorCode::kDeadlineExceeded, {"killed"});
  } while (!std::filesystem::exists(begun) && !HasFailure());
  expect_answer({});
}

TEST_F(PreemptionSourcesTest, ATokenOfAwsIsUsedUntilItHasRunOut) {
  std::atomic<int> tokens{0};
  std::atomic<bool> expired{false};
  MetadataServer server([&](const std::string& request) {
    if (request.starts_with("PUT")) return http_answer(200, "TOKEN" + std::to_string(++tokens));
    return expired ? http_answer(401, "") : http_answer(404, "");
  });
  use(PreemptionUrl::Kind::kAws, server);
  expect_answer({});
  expect_answer({});
  EXPECT_EQ(tokens, 1);
  expired = true;
  expect_failure(ask().status(), ErrorCode::kUnavailable, {"401", "token has run out"});
  EXPECT_EQ(tokens, 1);
  expired = false;
  expect_answer({});
  EXPECT_EQ(tokens, 2);
}

TEST_F(PreemptionSourcesTest, EndpointsThatAnswerWithAnotherStatusAreUnavailable) {
  MetadataServer server([](const std::string&) { return http_answer(503, "TRUE"); });
  use(PreemptionUrl::Kind::kAws, server);
  expect_failure(ask().status(), ErrorCode::kUnavailable, {"503", "token"});
  use(PreemptionUrl::Kind::kGcp, server);
  expect_failure(ask().status(), ErrorCode::kUnavailable, {"503"});
}

TEST_F(PreemptionSourcesTest, OnlyGcpsOwnAnswersCount) {
  MetadataServer server(support::gcp_metadata("TRUE"));
  use(PreemptionUrl::Kind::kGcp, server);
  const Result<PreemptionAnswer> told = ask();
  ASSERT_TRUE(told.ok()) << told.status().to_string();
  EXPECT_TRUE(told->has_value());
  server.set([](const std::string&) { return http_answer(200, "TRUE"); });
  expect_failure(ask().status(), ErrorCode::kInvalidArgument, {"Metadata-Flavor"});
}

TEST_F(PreemptionSourcesTest, ASourceThatIsGoneAnswersNoMore) {
  for (const auto kind : {PreemptionUrl::Kind::kAws, PreemptionUrl::Kind::kGcp}) {
    MetadataServer server([](const std::string&) { return http_answer(500, ""); });
    server.pause_ms = -1;
    use(kind, server);
    std::atomic<bool> answered = false;
    // Held by the question: it goes when that has ended.
    auto question = std::make_shared<int>();
    const std::weak_ptr<int> asked = question;
    run_on(loop_, [&] {
      source_->ask(deadline_after(60s),
                   [&answered, held = std::move(question)](auto) { answered = true; });
    });
    EXPECT_TRUE(support::eventually([&] { return server.requests() == 1; }));
    drop();
    server.pause_ms = 0;
    EXPECT_TRUE(support::eventually([&] { return asked.expired(); }));
    EXPECT_FALSE(answered);
  }
}

TEST_F(PreemptionSourcesTest, OptionsNameTheirSourcesAndABadUrlIsRefused) {
  PreemptionOptions options;
  EXPECT_TRUE(preemption_sources(loop_, options)->empty());
  options.file = "/run/preempted";
  options.command = "is-preempted";
  options.url = "gcp+http://host:81";
  const auto sources = preemption_sources(loop_, options);
  ASSERT_TRUE(sources.ok()) << sources.status().to_string();
  ASSERT_EQ(sources->size(), 3u);
  EXPECT_EQ((*sources)[0]->name(), "the file /run/preempted");
  EXPECT_EQ((*sources)[1]->name(), "the command `is-preempted`");
  EXPECT_EQ((*sources)[2]->name(), "the metadata endpoint of GCP at host:81");
  options.url = "http://host:81";
  expect_failure(preemption_sources(loop_, options).status(), ErrorCode::kInvalidArgument,
                 {"--preemption-url"});
}

}  // namespace
}  // namespace runtime
