#include "runtime/transport/frame_reader.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "runtime/core/check.h"

namespace runtime {

struct FrameReader::Block {
  alignas(64) std::byte bytes[kBlockBytes];
};

namespace {

// A frame that takes more than this is received into its own memory.
constexpr std::uint64_t kInBlockMax = FrameReader::kBlockBytes / 2;
// Below this much free space, and with nothing unparsed, the next receive starts a new block.
constexpr std::size_t kRoomMin = 4 << 10;

// Whether no other reference to the block exists. Reading the count alone orders nothing: the fence
// makes the last holder's reads happen before our writes. ThreadSanitizer does not know fences, so
// under it blocks are never reused.
template <class Block>
bool sole_holder(const std::shared_ptr<Block>& block) {
#if defined(__SANITIZE_THREAD__)
  return false;
#else
  if (block.use_count() != 1) return false;
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
#endif
}

}  // namespace

Status FrameReader::add_fd(FileDescriptor fd) {
  if (fds_.size() >= kUnclaimedFdsMax)
    return invalid_argument("more descriptors than frames claim");
  fds_.push_back(std::move(fd));
  return {};
}

// Leaves at least `bytes` between begin_ and the end of the block, and some of it free.
void FrameReader::make_room(std::size_t bytes) {
  std::size_t held = end_ - begin_;
  if (block_ && kBlockBytes - begin_ >= bytes && end_ < kBlockBytes) return;
  if (block_ && sole_holder(block_)) {
    std::memmove(block_->bytes, block_->bytes + begin_, held);
  } else {
    auto fresh = std::make_shared_for_overwrite<Block>();
    if (held > 0) std::memcpy(fresh->bytes, block_->bytes + begin_, held);
    block_ = std::move(fresh);
  }
  begin_ = 0;
  end_ = held;
}

std::span<const iovec> FrameReader::prepare() {
  std::size_t count = 0;
  if (large_) {
    if (large_->meta_missing > 0) pieces_[count++] = {large_->meta_data, large_->meta_missing};
    if (large_->payload_missing > 0)
      pieces_[count++] = {large_->payload_data, large_->payload_missing};
    if (large_->padding_missing > 0) pieces_[count++] = {padding_.data(), large_->padding_missing};
  }
  if (begin_ == end_) {
    if (block_ && begin_ > 0 && sole_holder(block_)) begin_ = end_ = 0;
    make_room(kRoomMin);
  }
  pieces_[count++] = {block_->bytes + end_, kBlockBytes - end_};
  return {pieces_.data(), count};
}

Status FrameReader::commit(std::size_t count, FrameSink& sink) {
  if (large_) {
    auto take = [&count](std::uint64_t& missing) {
      std::uint64_t step = std::min<std::uint64_t>(missing, count);
      missing -= step;
      count -= step;
      return step;
    };
    large_->meta_data += take(large_->meta_missing);
    large_->payload_data += take(large_->payload_missing);
    take(large_->padding_missing);
    if (large_->meta_missing + large_->payload_missing + large_->padding_missing > 0) return {};
    Large done = std::move(*large_);
    large_.reset();
    Status status = finish(done.header, std::move(done.meta), std::move(done.payload), sink);
    if (!status.ok()) return status;
  }
  end_ += count;
  return parse(sink);
}

Status FrameReader::parse(FrameSink& sink) {
  while (end_ - begin_ >= FrameHeader::kBytes) {
    std::span<const std::byte, FrameHeader::kBytes> raw(block_->bytes + begin_,
                                                        FrameHeader::kBytes);
    auto header = FrameHeader::decode(raw, meta_bytes_max_, payload_bytes_max_);
    if (!header.ok()) return header.status();
    std::uint64_t size = FrameHeader::kBytes + header->meta_bytes + header->payload_bytes +
                         padding_of(header->payload_bytes);
    if (end_ - begin_ < size) {
      if (size > kInBlockMax) {
        begin_large(*header, sink);
      } else {
        make_room(size);
      }
      return {};
    }
    Buffer frame({block_->bytes + begin_, static_cast<std::size_t>(size)}, block_);
    begin_ += size;
    Status status =
        finish(*header, frame.slice(FrameHeader::kBytes, header->meta_bytes),
               frame.slice(FrameHeader::kBytes + header->meta_bytes, header->payload_bytes), sink);
    if (!status.ok()) return status;
  }
  if (end_ != begin_) make_room(FrameHeader::kBytes);
  return {};
}

void FrameReader::begin_large(const FrameHeader& header, FrameSink& sink) {
  Large& large = large_.emplace(Large{});
  large.header = header;
  std::size_t at = begin_ + FrameHeader::kBytes;
  std::size_t held = end_ - at;

  std::size_t meta_held = std::min<std::size_t>(held, header.meta_bytes);
  if (meta_held == header.meta_bytes) {
    large.meta = Buffer({block_->bytes + at, meta_held}, block_);
  } else {
    large.meta = Buffer::allocate(header.meta_bytes, &large.meta_data);
    std::memcpy(large.meta_data, block_->bytes + at, meta_held);
    large.meta_data += meta_held;
    large.meta_missing = header.meta_bytes - meta_held;
  }
  at += meta_held;

  PayloadTarget target = sink.payload_target(header);
  if (header.payload_bytes > 0 && target.bytes.size() == header.payload_bytes) {
    large.payload_data = target.bytes.data();
    large.payload = Buffer(target.bytes, std::move(target.owner));
  } else {
    large.payload = Buffer::allocate(header.payload_bytes, &large.payload_data);
  }
  std::size_t payload_held = std::min<std::uint64_t>(end_ - at, header.payload_bytes);
  if (payload_held > 0) std::memcpy(large.payload_data, block_->bytes + at, payload_held);
  large.payload_data += payload_held;
  large.payload_missing = header.payload_bytes - payload_held;
  // What is held is less than the frame, so the rest can only be padding.
  large.padding_missing = padding_of(header.payload_bytes) - (end_ - at - payload_held);
  // The next frame is received at a word boundary, as if the rest had come this way: it is decoded
  // where it lies.
  begin_ = end_ = (end_ + 7) / 8 * 8;
}

Status FrameReader::finish(const FrameHeader& header, Buffer meta, Buffer payload,
                           FrameSink& sink) {
  Message message;
  message.kind = static_cast<FrameKind>(header.kind);
  message.id = header.id;
  message.meta = std::move(meta);
  message.payload = std::move(payload);
  if (header.fd_count > 0) {
    if (fds_.size() < header.fd_count)
      return invalid_argument("frame claims descriptors that did not arrive");
    message.fds.reserve(header.fd_count);
    for (int i = 0; i < header.fd_count; ++i) {
      message.fds.push_back(std::move(fds_.front()));
      fds_.pop_front();
    }
  }
  sink.on_frame(std::move(message));
  return {};
}

}  // namespace runtime
