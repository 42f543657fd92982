#include "runtime/transport/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/support/expect_failure.h"
#include "tests/support/listening_socket.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using support::expect_failure;
using transport_detail::adopt_socket;
using transport_detail::bind_listener;
using transport_detail::connect_socket;
using transport_detail::peer_address;
using transport_detail::peer_source;
using transport_detail::TimedSocket;

class SocketTest : public ::testing::Test {
 protected:
  Endpoint unix_endpoint() const { return *Endpoint::unix_socket(folder_.file("s")); }
  Status bind(Endpoint endpoint) { return bind_listener(context_, endpoint).status(); }
  std::shared_ptr<TimedSocket> timed_socket() {
    return std::make_shared<TimedSocket>(context_, ConnectionSocket(context_));
  }
  Status connect(const std::shared_ptr<TimedSocket>& timed, const Endpoint& endpoint) {
    std::optional<Status> connected;
    asio::co_spawn(context_, connect_socket(*timed, endpoint),
                   [&](std::exception_ptr thrown, Status status) {
                     EXPECT_EQ(thrown, nullptr);
                     connected = std::move(status);
                   });
    run();
    return connected.value_or(internal_error("it never ended"));
  }
  void run() {
    context_.restart();
    context_.run();
  }
  /// Two ends of a connection.
  std::pair<FileDescriptor, FileDescriptor> unix_pair(int type = SOCK_STREAM) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  }

  support::TemporaryFolder folder_;
  asio::io_context context_;
};

// -- Listening

TEST_F(SocketTest, TheEndpointBecomesTheRealOneAndIsTakenThen) {
  Endpoint endpoint = Endpoint::tcp("127.0.0.1", 0);
  const auto acceptor = bind_listener(context_, endpoint);
  ASSERT_TRUE(acceptor.ok()) << acceptor.status().to_string();
  EXPECT_NE(endpoint.port, 0);
  EXPECT_TRUE(support::connect_to("127.0.0.1", endpoint.port));
  expect_failure(bind(endpoint), ErrorCode::kUnavailable, {endpoint.to_string(), "in use"});
}

TEST_F(SocketTest, OnlyNumericAddressesAreListenedAt) {
  EXPECT_TRUE(bind(Endpoint::tcp("localhost", 0)).ok());
  expect_failure(bind(Endpoint::tcp("some.host", 0)), ErrorCode::kInvalidArgument,
                 {"some.host", "numeric"});
}

TEST_F(SocketTest, AUnixSocketIsItsUsersAlone) {
  const mode_t mask = ::umask(0);
  Endpoint endpoint = unix_endpoint();
  const auto acceptor = bind_listener(context_, endpoint);
  EXPECT_EQ(::umask(mask), 0u) << "the process's mask is as it was";
  ASSERT_TRUE(acceptor.ok()) << acceptor.status().to_string();
  struct stat info {};
  ASSERT_EQ(::stat(endpoint.unix_path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0077, 0u);
}

TEST_F(SocketTest, ASocketThatADeadProcessLeftIsReplaced) {
  Endpoint endpoint = unix_endpoint();
  {
    auto acceptor = bind_listener(context_, endpoint);
    ASSERT_TRUE(acceptor.ok()) << acceptor.status().to_string();
    expect_failure(bind(endpoint), ErrorCode::kUnavailable, {"in use"});
  }
  EXPECT_TRUE(bind(endpoint).ok());
}

TEST_F(SocketTest, AFileThatIsNoSocketStays) {
  std::ofstream(folder_.file("s")) << "mine";
  expect_failure(bind(unix_endpoint()), ErrorCode::kInvalidArgument, {"is not a socket"});
  EXPECT_TRUE(std::filesystem::is_regular_file(folder_.file("s")));
}

// -- Connecting

TEST_F(SocketTest, WhatListensIsReached) {
  const FileDescriptor listener = support::listen_at("127.0.0.1", 0);
  const Endpoint endpoint = Endpoint::tcp("127.0.0.1", support::port_of(listener));
  const auto timed = timed_socket();
  ASSERT_TRUE(connect(timed, endpoint).ok());
  EXPECT_EQ(peer_address(timed->socket, {}), endpoint.to_string());
  EXPECT_EQ(peer_source(timed->socket), std::string("\x7f\0\0\1", 4));
}

TEST_F(SocketTest, WhereNothingListensIsNamed) {
  const std::uint16_t port = support::port_of(support::listen_at("127.0.0.1", 0));
  const Endpoint endpoint = Endpoint::tcp("127.0.0.1", port);
  expect_failure(connect(timed_socket(), endpoint), ErrorCode::kUnavailable,
                 {endpoint.to_string(), "nothing listens"});
  expect_failure(connect(timed_socket(), unix_endpoint()), ErrorCode::kUnavailable,
                 {folder_.file("s"), "no such socket"});
}

TEST_F(SocketTest, TheDeadlineClosesTheSocketAndIsTheReasonThen) {
  const auto timed = timed_socket();
  boost::system::error_code ec;
  timed->socket.open(asio::generic::stream_protocol(AF_INET, 0), ec);
  timed->arm(steady_now() + 1h);
  timed->disarm();
  run();
  EXPECT_TRUE(timed->socket.is_open());
  const Status aborted = cancelled("10.0.0.1:1: cancelled");
  EXPECT_EQ(timed->explain(aborted, "no answer"), aborted);
  timed->arm(steady_now());
  run();
  EXPECT_FALSE(timed->socket.is_open());
  EXPECT_EQ(timed->explain(aborted, "no answer"), deadline_exceeded("no answer"));
  EXPECT_EQ(timed->explain(unavailable("refused"), "no answer"), unavailable("refused"));
}

// -- Connections that others made

TEST_F(SocketTest, OnlyStreamSocketsAreAdopted) {
  auto [one, other] = unix_pair();
  auto adopted = adopt_socket(context_, std::move(one));
  ASSERT_TRUE(adopted.ok()) << adopted.status().to_string();
  EXPECT_EQ(peer_address(*adopted, {}), "unix:adopted");
  EXPECT_EQ(peer_address(*adopted, unix_endpoint()), unix_endpoint().to_string());
  EXPECT_EQ(peer_source(*adopted), "");
  expect_failure(adopt_socket(context_, unix_pair(SOCK_DGRAM).first).status(),
                 ErrorCode::kInvalidArgument, {"stream"});
  EXPECT_FALSE(adopt_socket(context_, FileDescriptor(::open("/dev/null", O_RDONLY))).ok());
}

TEST_F(SocketTest, AClosedConnectionHasNoPeer) {
  ConnectionSocket closed(context_);
  EXPECT_EQ(peer_address(closed, {}), "a closed connection");
  EXPECT_EQ(peer_source(closed), "");
}

}  // namespace
}  // namespace runtime
