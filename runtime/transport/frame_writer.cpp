#include "runtime/transport/frame_writer.h"

#include <algorithm>

#include "runtime/core/check.h"

namespace runtime {

namespace {

constexpr std::byte kZeros[8]{};
constexpr std::size_t kKeptBytesMax =
    1 << 20;  // a block that grew beyond this in a burst is given back

}  // namespace

std::size_t FrameWriter::wire_bytes(const Message& message) {
  std::size_t payload = message.payload.size();
  return FrameHeader::kBytes + message.meta.size() + payload + padding_of(payload);
}

void FrameWriter::Queue::reset() {
  pieces.clear();
  fds.clear();
  if (block.capacity() > kKeptBytesMax) {
    block = {};
  } else {
    block.clear();
  }
}

void FrameWriter::append_bytes(std::span<const std::byte> bytes, std::size_t fd_count) {
  if (bytes.empty()) return;  // an empty piece could never be consumed
  Queue& queue = filling_;
  // Bytes behind bytes extend the piece, unless descriptors have to travel with its first byte.
  if (queue.pieces.empty() || !queue.pieces.back().external.empty() || fd_count > 0) {
    Piece& piece = queue.pieces.emplace_back();
    piece.begin = queue.block.size();
    piece.fd_count = fd_count;
  }
  queue.block.insert(queue.block.end(), bytes.begin(), bytes.end());
  queue.pieces.back().size += bytes.size();
}

void FrameWriter::append_piece(const Buffer& bytes) {
  if (bytes.empty()) return;
  if (bytes.size() <= kCopiedBytesMax) return append_bytes(bytes.bytes(), 0);
  Piece& piece = filling_.pieces.emplace_back();
  piece.size = bytes.size();
  piece.external = bytes;
}

void FrameWriter::append(Message&& message) {
  std::size_t payload_bytes = message.payload.size();
  FrameHeader header;
  header.meta_bytes = static_cast<std::uint32_t>(message.meta.size());
  header.kind = static_cast<std::uint16_t>(message.kind);
  header.fd_count = static_cast<std::uint8_t>(message.fds.size());
  header.id = message.id;
  header.payload_bytes = payload_bytes;
  std::array<std::byte, FrameHeader::kBytes> raw;
  header.encode(raw);
  append_bytes(raw, message.fds.size());
  append_piece(message.meta);
  append_piece(message.payload.first());
  for (const Buffer& piece : message.payload.more()) append_piece(piece);
  append_bytes(std::span(kZeros).first(padding_of(payload_bytes)), 0);
  std::move(message.fds.begin(), message.fds.end(), std::back_inserter(filling_.fds));
  bytes_ += FrameHeader::kBytes + message.meta.size() + payload_bytes + padding_of(payload_bytes);
}

void FrameWriter::gather(Batch& batch) {
  if (piece_ == sending_.pieces.size()) {
    sending_.reset();
    std::swap(sending_, filling_);
    piece_ = offset_ = fd_ = 0;
  }
  batch.count = 0;
  batch.fds = {};
  for (std::size_t i = piece_; i < sending_.pieces.size() && batch.count < kPiecesPerBatchMax;
       ++i) {
    const Piece& piece = sending_.pieces[i];
    std::size_t sent = i == piece_ ? offset_ : 0;
    if (piece.fd_count > 0 && sent == 0) {
      if (batch.count > 0) break;
      batch.fds = std::span(sending_.fds).subspan(fd_, piece.fd_count);
    }
    const std::byte* data =
        piece.external.empty() ? sending_.block.data() + piece.begin : piece.external.data();
    batch.pieces[batch.count++] = {const_cast<std::byte*>(data) + sent, piece.size - sent};
  }
}

void FrameWriter::consume(std::size_t count) {
  CHECK(count <= bytes_);
  bytes_ -= count;
  while (count > 0) {
    Piece& piece = sending_.pieces[piece_];
    if (offset_ == 0 && piece.fd_count > 0) {
      // The kernel holds its own references from now on.
      for (std::size_t i = 0; i < piece.fd_count; ++i) sending_.fds[fd_++].reset();
    }
    std::size_t step = std::min(count, piece.size - offset_);
    offset_ += step;
    count -= step;
    if (offset_ == piece.size) {
      if (!piece.external.empty()) spent_.push_back(std::move(piece.external));
      ++piece_;
      offset_ = 0;
    }
  }
}

}  // namespace runtime
