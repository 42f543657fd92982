// FrameReader: turns received bytes into frames.
//
// Bytes are received into blocks of 64 KiB; frames that fit are handed out as slices of the block,
// without a copy. A larger frame gets its own memory (or the target that the sink names) and is
// received right into it. A block is reused once no slice of it is left. So keep a delivered buffer
// only as long as you need it, and copy small things that you keep for long.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "runtime/core/status.h"
#include "runtime/transport/frame.h"

namespace runtime {

/// Where a large payload should go.
struct PayloadTarget {
  std::span<std::byte> bytes;
  std::shared_ptr<void> owner;  // keeps the bytes valid
};

/// Takes the frames as they become complete.
class FrameSink {
 public:
  virtual void on_frame(Message message) = 0;
  /// Asked once for each frame whose payload is received on its own. An answer of another size than
  /// the payload is ignored.
  virtual PayloadTarget payload_target(const FrameHeader& header) = 0;

 protected:
  ~FrameSink() = default;
};

class FrameReader {
 public:
  static constexpr std::size_t kBlockBytes = 64 << 10;
  static constexpr std::size_t kUnclaimedFdsMax = 64;

  FrameReader(std::uint64_t meta_bytes_max, std::uint64_t payload_bytes_max)
      : meta_bytes_max_(meta_bytes_max), payload_bytes_max_(payload_bytes_max) {}

  /// Where the next bytes go; never empty. Valid until commit().
  std::span<const iovec> prepare();
  /// A descriptor that arrived with the bytes about to be committed.
  /// Errors: kInvalidArgument when too many wait for their frame.
  Status add_fd(FileDescriptor fd);
  /// `count` bytes were received. Hands complete frames to the sink in order.
  /// Errors: kInvalidArgument on a violation of the format; the connection is then useless.
  Status commit(std::size_t count, FrameSink& sink);

  /// Bytes of an unfinished frame are held.
  bool mid_frame() const { return large_.has_value() || end_ != begin_; }

 private:
  struct Block;
  struct Large {
    FrameHeader header;
    Buffer meta;
    std::byte* meta_data = nullptr;
    Buffer payload;
    std::byte* payload_data = nullptr;
    std::uint64_t meta_missing = 0;
    std::uint64_t payload_missing = 0;
    std::uint64_t padding_missing = 0;
  };

  Status parse(FrameSink& sink);
  void begin_large(const FrameHeader& header, FrameSink& sink);
  Status finish(const FrameHeader& header, Buffer meta, Buffer payload, FrameSink& sink);
  void make_room(std::size_t bytes);

  std::uint64_t meta_bytes_max_;
  std::uint64_t payload_bytes_max_;
  std::shared_ptr<Block> block_;
  std::size_t begin_ = 0;  // unparsed bytes of the block
  std::size_t end_ = 0;
  std::optional<Large> large_;
  std::deque<FileDescriptor> fds_;
  std::array<std::byte, 8> padding_;
  std::array<iovec, 4> pieces_;
};

}  // namespace runtime
