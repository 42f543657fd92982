#include "runtime/metrics/http_connection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/core/asio.h"

namespace runtime {
namespace {

// What a peer sends, in pieces, and what it is sent. Calls back at once.
struct Peer {
  std::vector<std::string> pieces;
  std::string answered;
  bool is_closed = false;
};

class FakeStream : public HttpStream {
 public:
  explicit FakeStream(Peer& peer) : peer_(peer) {}
  void open(std::string begun, Opened opened) override { opened({}, std::move(begun)); }
  void read_some(asio::mutable_buffer into, Transferred done) override {
    if (peer_.pieces.empty()) return done(asio::error::eof, 0);
    const std::string piece = peer_.pieces.front();
    peer_.pieces.erase(peer_.pieces.begin());
    const std::size_t count = std::min(piece.size(), into.size());
    std::memcpy(into.data(), piece.data(), count);
    done({}, count);
  }
  void write(asio::const_buffer from, Transferred done) override {
    peer_.answered.append(static_cast<const char*>(from.data()), from.size());
    done({}, from.size());
  }
  void end_writing(std::function<void()> done) override { done(); }
  void close() override { peer_.is_closed = true; }

 private:
  Peer& peer_;
};

class HttpConnectionTest : public ::testing::Test {
 protected:
  /// What a peer is answered that sends these pieces.
  std::string answer(std::vector<std::string> pieces, HttpConnection::Service service) {
    peer_ = {};
    const std::string begun = pieces.front();
    peer_.pieces.assign(pieces.begin() + 1, pieces.end());
    ended_ = 0;
    if (!service.read) service.read = [](const auto& told) { told(std::string("numbers 1\n")); };
    const auto connection =
        std::make_shared<HttpConnection>(loop_, std::make_unique<FakeStream>(peer_),
                                         std::move(service), [this](HttpConnection&) { ++ended_; });
    connection->begin(begun);
    return peer_.answered;
  }
  static HttpConnection::Service local() { return {.is_private = true}; }

  EventLoop loop_;
  Peer peer_;
  int ended_ = 0;
};

constexpr const char* kRequest = "GET /metrics HTTP/1.1\r\nHost: a\r\n";

TEST_F(HttpConnectionTest, AnswersARequestInPiecesAndEnds) {
  const std::string answered = answer({kRequest, "Accept: */*\r\n", "\r\n"}, local());
  EXPECT_TRUE(answered.starts_with("HTTP/1.1 200")) << answered;
  EXPECT_TRUE(answered.ends_with("numbers 1\n")) << answered;
  EXPECT_EQ(ended_, 1);
  EXPECT_TRUE(peer_.is_closed);
}

TEST_F(HttpConnectionTest, RefusesWhatOthersCouldReadWhatIsOffAndWhoShowsNoKey) {
  const std::string whole = std::string(kRequest) + "\r\n";
  EXPECT_NE(answer({whole}, {}).find("--tls-cert"), std::string::npos);
  EXPECT_NE(answer({whole}, {.is_off = true, .is_private = true}).find("--metrics off"),
            std::string::npos);
  HttpConnection::Service keyed = local();
  keyed.keys = [] { return std::vector<std::string>{"secret"}; };
  EXPECT_TRUE(answer({whole}, keyed).starts_with("HTTP/1.1 401")) << peer_.answered;
  EXPECT_EQ(peer_.answered.find("numbers"), std::string::npos);
}

TEST_F(HttpConnectionTest, WhatIsNoRequestAndWhatCannotBeReadHaveAnAnswer) {
  EXPECT_TRUE(answer({"nonsense\r\n\r\n"}, local()).starts_with("HTTP/1.1 4")) << peer_.answered;
  EXPECT_NE(answer({kRequest}, local()).find("in the middle of its head"), std::string::npos);
  HttpConnection::Service broken = local();
  broken.read = [](const auto& told) { told(unavailable("the head is away")); };
  EXPECT_TRUE(answer({std::string(kRequest) + "\r\n"}, broken).starts_with("HTTP/1.1 503"));
  EXPECT_EQ(ended_, 1);
}

TEST_F(HttpConnectionTest, OneThatIsClosedCallsNothingAndAnswersNothing) {
  std::function<void(Result<std::string>)> late;
  HttpConnection::Service slow = local();
  slow.read = [&](auto told) { late = std::move(told); };
  const auto connection =
      std::make_shared<HttpConnection>(loop_, std::make_unique<FakeStream>(peer_), std::move(slow),
                                       [this](HttpConnection&) { ++ended_; });
  connection->begin(std::string(kRequest) + "\r\n");
  ASSERT_TRUE(late);
  connection->close();
  late(std::string("numbers 1\n"));
  EXPECT_EQ(peer_.answered, "");
  EXPECT_EQ(ended_, 0);
}

}  // namespace
}  // namespace runtime
