// ChannelPair: the two ends of one connection within this process, without a handshake.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>

#include "runtime/transport/channel.h"
#include "runtime/transport/socket_stream.h"

namespace support {

/// Both on one loop, which outlives them. The end of the pair closes them.
class ChannelPair {
 public:
  explicit ChannelPair(runtime::EventLoop& loop) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    near = made(loop, ends[0]);
    far = made(loop, ends[1]);
  }
  ChannelPair(const ChannelPair&) = delete;
  ChannelPair& operator=(const ChannelPair&) = delete;
  ~ChannelPair() {
    near->close(runtime::cancelled("the test is over"));
    far->close(runtime::cancelled("the test is over"));
  }

  std::shared_ptr<runtime::Channel> near, far;

 private:
  static std::shared_ptr<runtime::Channel> made(runtime::EventLoop& loop, int end) {
    runtime::Channel::Socket socket(loop.context(),
                                    runtime::asio::generic::stream_protocol(AF_UNIX, 0), end);
    return std::make_shared<runtime::Channel>(loop, std::move(socket),
                                              std::make_unique<runtime::PlainStream>(true),
                                              runtime::PeerInfo{}, runtime::ChannelOptions{});
  }
};

}  // namespace support
