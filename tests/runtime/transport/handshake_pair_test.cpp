// The two sides of the handshake on a pair of sockets, without a channel and a listener.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "runtime/transport/handshake.h"
#include "runtime/transport/socket_stream.h"
#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using support::expect_failure;

/// One process's end of the connection.
struct HandshakeEnd {
  ConnectionSocket socket;
  Credentials credentials = {};
  SessionTerms terms = {};
  std::optional<Result<Handshaken>> done = {};

  const Status& status() const { return done->status(); }
  /// After a refusal the callee waits for this.
  void close_unless_ok() {
    boost::system::error_code ignored;
    if (!done->ok()) socket.close(ignored);
  }
};

asio::awaitable<void> call_over(HandshakeEnd& end) {
  const Preamble preamble;
  const std::string address = "unix:callee";
  end.done = co_await handshake_caller(end.socket, preamble, end.credentials, address, end.terms);
  end.close_unless_ok();
}

asio::awaitable<void> answer_over(HandshakeEnd& end, const SessionAnswer& answer) {
  auto received = co_await read_first_bytes(end.socket);
  EXPECT_TRUE(received.ok()) << received.status().to_string();
  if (!received.ok()) co_return;
  auto preamble = co_await read_preamble(end.socket, std::move(*received));
  EXPECT_TRUE(preamble.ok()) << preamble.status().to_string();
  if (!preamble.ok()) co_return;
  const Inbound inbound{*preamble};
  const std::string address = "unix:caller";
  end.done =
      co_await handshake_callee(end.socket, inbound, end.credentials, address, answer, end.terms);
  end.close_unless_ok();
}

class HandshakePair : public ::testing::Test {
 protected:
  HandshakePair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    boost::system::error_code ec;
    caller_.socket.assign(asio::generic::stream_protocol(AF_UNIX, 0), ends[0], ec);
    EXPECT_FALSE(ec);
    callee_.socket.assign(asio::generic::stream_protocol(AF_UNIX, 0), ends[1], ec);
    EXPECT_FALSE(ec);
    caller_.credentials.token = callee_.credentials.token = "secret";
    caller_.credentials.role = Role::kDriver;
    callee_.credentials.role = Role::kNode;
    callee_.credentials.node = NodeId::random();
  }

  void shake(const SessionAnswer& answer = {}) {
    const auto on_end = [](std::exception_ptr thrown) { EXPECT_EQ(thrown, nullptr); };
    asio::co_spawn(context_, call_over(caller_), on_end);
    asio::co_spawn(context_, answer_over(callee_, answer), on_end);
    context_.run();
    ASSERT_TRUE(caller_.done && callee_.done);
  }

  asio::io_context context_;
  HandshakeEnd caller_{ConnectionSocket(context_)}, callee_{ConnectionSocket(context_)};
};

TEST_F(HandshakePair, EachSideLearnsWhoIsAtTheOther) {
  shake();
  ASSERT_TRUE(caller_.done->ok()) << caller_.status().to_string();
  ASSERT_TRUE(callee_.done->ok()) << callee_.status().to_string();
  const Handshaken& callee = **caller_.done;
  EXPECT_EQ(callee.peer.role, Role::kNode);
  EXPECT_EQ(callee.peer.node, callee_.credentials.node);
  EXPECT_EQ(callee.peer.address, "unix:callee");
  EXPECT_EQ(callee.peer.pid, ::getpid()) << "the kernel's word";
  EXPECT_NE(callee.stream, nullptr);
  const Handshaken& caller = **callee_.done;
  EXPECT_EQ(caller.peer.role, Role::kDriver);
  EXPECT_EQ(caller.peer.address, "unix:caller");
  EXPECT_NE(caller.stream, nullptr);
}

TEST_F(HandshakePair, TermsOfASessionAreAnswered) {
  caller_.terms.session = 7;
  shake([](const PeerInfo& peer, const SessionTerms& offered) -> Result<SessionTerms> {
    EXPECT_EQ(peer.role, Role::kDriver);
    return SessionTerms{.session = offered.session, .resumes = true, .received = 3};
  });
  ASSERT_TRUE(caller_.done->ok()) << caller_.status().to_string();
  EXPECT_EQ(callee_.terms.session, 7U);
  EXPECT_TRUE(caller_.terms.resumes);
  EXPECT_EQ(caller_.terms.received, 3U);
}

TEST_F(HandshakePair, AnotherTokenIsRefusedOnBothSides) {
  caller_.credentials.token = "guess";
  shake();
  expect_failure(caller_.status(), ErrorCode::kInvalidArgument, {"unix:callee", "wrong token"});
  expect_failure(callee_.status(), ErrorCode::kInvalidArgument, {"unix:caller", "wrong token"});
}

}  // namespace
}  // namespace runtime
