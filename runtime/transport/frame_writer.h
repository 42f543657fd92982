// FrameWriter: the frames that wait to be sent, kept so that many leave in one system call.
//
// Small pieces are copied into one growing block, large ones are referenced. Two queues: one is
// being sent while the other fills, so that the bytes in flight never move. Not thread-safe:
// Channel's mutex guards it; only gather()'s result may be used outside of it.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "runtime/transport/frame.h"

namespace runtime {

class FrameWriter {
 public:
  static constexpr std::size_t kPiecesPerBatchMax = 64;
  static constexpr std::size_t kCopiedBytesMax = 8 << 10;  // larger pieces are referenced

  /// What one sendmsg takes. Valid until consume().
  struct Batch {
    std::array<iovec, kPiecesPerBatchMax> pieces;
    std::size_t count = 0;
    std::span<const FileDescriptor> fds;  // travel with the first byte
  };

  /// Queues a frame. Its sizes were checked.
  void append(Message&& message);

  bool empty() const { return bytes_ == 0; }
  /// Queued and in flight.
  std::size_t bytes() const { return bytes_; }
  /// Descriptors among it.
  std::size_t descriptors() const { return filling_.fds.size() + sending_.fds.size() - fd_; }

  /// The next bytes to send; call consume() before calling it again.
  void gather(Batch& batch);
  /// `count` of the gathered bytes were sent.
  void consume(std::size_t count);
  /// The referenced pieces that consume() has finished with. Their owners may run any code when
  /// dropped: let go of them outside of locks.
  std::vector<Buffer>& spent() { return spent_; }

  /// The bytes that a frame takes on the wire.
  static std::size_t wire_bytes(const Message& message);

 private:
  struct Piece {
    std::size_t begin = 0;  // in `block` when there is no `external`
    std::size_t size = 0;
    std::size_t fd_count = 0;
    Buffer external;
  };
  struct Queue {
    std::vector<std::byte> block;
    std::vector<Piece> pieces;
    std::vector<FileDescriptor> fds;
    void reset();
  };

  void append_bytes(std::span<const std::byte> bytes, std::size_t fd_count);
  void append_piece(const Buffer& piece);

  Queue filling_;
  Queue sending_;
  std::vector<Buffer> spent_;
  std::size_t piece_ = 0;   // cursor in sending_
  std::size_t offset_ = 0;  // sent of that piece
  std::size_t fd_ = 0;      // sent of sending_.fds
  std::size_t bytes_ = 0;
};

}  // namespace runtime
