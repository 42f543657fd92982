// The byte stream of an authenticated peer: any bytes, in any chunks. The first byte of the input
// picks the size of the chunks.
#include "runtime/transport/frame_reader.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::uint64_t kLimit = 1 << 20;

struct Sink final : runtime::FrameSink {
  void on_frame(runtime::Message message) override {
    // Touch everything that was handed out.
    unsigned sum = 0;
    for (std::byte byte : message.meta.bytes()) sum += static_cast<unsigned>(byte);
    for (std::byte byte : message.payload.first().bytes()) sum += static_cast<unsigned>(byte);
    touched += sum;
    if (message.meta.size() > kLimit || message.payload.size() > kLimit ||
        message.meta.size() % 8 != 0)
      std::abort();
    kept = std::move(message);  // a slice outlives the next receive
  }
  runtime::PayloadTarget payload_target(const runtime::FrameHeader&) override { return {}; }
  runtime::Message kept;
  unsigned touched = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::size_t chunk_max = data[0] == 0 ? size : data[0];
  ++data;
  --size;
  runtime::FrameReader reader(kLimit, kLimit);
  Sink sink;
  while (size > 0) {
    std::size_t left = std::min(size, chunk_max), count = 0;
    for (const iovec& piece : reader.prepare()) {
      std::size_t step = std::min(left, piece.iov_len);
      std::memcpy(piece.iov_base, data + count, step);
      count += step;
      left -= step;
    }
    if (count == 0) std::abort();  // there is always room for something
    if (!reader.commit(count, sink).ok()) break;
    data += count;
    size -= count;
  }
  return 0;
}
