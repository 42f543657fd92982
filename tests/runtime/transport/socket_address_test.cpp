#include "runtime/transport/socket_address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "runtime/transport/file_descriptor.h"
#include "tests/support/listening_socket.h"

namespace runtime {
namespace {

TEST(SocketAddress, IsThatOfEachEnd) {
  const FileDescriptor listener = support::listen_at("127.0.0.1", 0);
  const FileDescriptor caller = support::connect_to("127.0.0.1", support::port_of(listener));
  const FileDescriptor arrived(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(arrived);
  EXPECT_EQ(peer_tcp_address(caller.get())->port(), support::port_of(listener));
  EXPECT_EQ(local_tcp_address(arrived.get()), peer_tcp_address(caller.get()));
  EXPECT_EQ(peer_tcp_address(arrived.get()), local_tcp_address(caller.get()));
}

TEST(SocketAddress, AnIpv4PeerOfAnIpv6SocketHasItsIpv4Address) {
  const FileDescriptor listener(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  socklen_t size = sizeof any;
  if (!listener || ::bind(listener.get(), reinterpret_cast<sockaddr*>(&any), size) != 0)
    GTEST_SKIP() << "there is no IPv6 here";
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&any), &size), 0);
  const FileDescriptor caller = support::connect_to("127.0.0.1", ntohs(any.sin6_port));
  const FileDescriptor arrived(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(arrived);
  EXPECT_EQ(local_tcp_address(arrived.get())->address().to_string(), "127.0.0.1");
  EXPECT_EQ(peer_tcp_address(arrived.get())->address().to_string(), "127.0.0.1");
}

TEST(SocketAddress, OtherSocketsHaveNone) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const FileDescriptor one(ends[0]), other(ends[1]);
  EXPECT_FALSE(local_tcp_address(one.get()));
  EXPECT_FALSE(peer_tcp_address(one.get()));
  EXPECT_FALSE(peer_tcp_address(-1));
}

}  // namespace
}  // namespace runtime
