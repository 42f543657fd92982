// Encrypted records of a peer, from any process that can write into its connection: nothing but
// what the peer sealed may reach the reader.
#include <sys/socket.h>

#include <cstdlib>

#include "runtime/transport/socket_stream.h"

namespace {

class NoFrames : public runtime::FrameSink {
  void on_frame(runtime::Message) override { std::abort(); }
  runtime::PayloadTarget payload_target(const runtime::FrameHeader&) override { std::abort(); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return 0;
  runtime::FileDescriptor far(ends[0]), near(ends[1]);
  (void)!::send(far.get(), data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  far.reset();
  runtime::SealedStream stream({}, {});
  runtime::FrameReader reader(64 << 20, 1 << 30);
  NoFrames sink;
  while (stream.receive(near.get(), reader, sink).status.ok()) {
  }
  return 0;
}
