// ChannelPair: two ends of a connection on one loop, whose peers are who the test says.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <utility>

#include "runtime/transport/channel.h"
#include "runtime/transport/socket_stream.h"
#include "tests/support/on_loop.h"

namespace runtime {

inline PeerInfo peer_of(Role role) {
  PeerInfo peer;
  peer.role = role;
  peer.address = "unix:/test";
  return peer;
}

/// Without a handshake. The ends are closed with it; neither needs to have a handler.
class ChannelPair {
 public:
  /// `far_peer`: who `near` says is at its other end.
  explicit ChannelPair(EventLoop& loop, PeerInfo far_peer = peer_of(Role::kWorker),
                       PeerInfo near_peer = peer_of(Role::kNode)) {
    int sockets[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets), 0);
    near = channel_on(loop, sockets[0], std::move(far_peer));
    far = channel_on(loop, sockets[1], std::move(near_peer));
  }
  ~ChannelPair() { close(); }
  /// Any thread; what it calls back comes on the loop.
  void close() {
    near->close(cancelled("test over"));
    far->close(cancelled("test over"));
  }

  std::shared_ptr<Channel> near, far;

 private:
  static std::shared_ptr<Channel> channel_on(EventLoop& loop, int fd, PeerInfo peer) {
    ConnectionSocket socket(loop.context(), asio::generic::stream_protocol(AF_UNIX, 0), fd);
    return std::make_shared<Channel>(loop, std::move(socket), std::make_unique<PlainStream>(true),
                                     std::move(peer), ChannelOptions{});
  }
};

}  // namespace runtime
