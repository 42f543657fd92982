// SocketStream: a channel's bytes on its socket, as they are or in encrypted records. Private to
// runtime/transport.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/transport/frame_reader.h"
#include "runtime/transport/frame_writer.h"
#include "runtime/transport/noise.h"
#include "runtime/transport/record.h"

namespace runtime {

/// Of one socket; not blocking. One thread at a time sends, one at a time receives: they may be
/// different ones.
class SocketStream {
 public:
  virtual ~SocketStream() = default;

  struct Sent {
    std::size_t consumed = 0;  // bytes of the batch that need not be given again
    int error = 0;             // of sendmsg(), 0: none
  };
  virtual Sent send(int fd, const FrameWriter::Batch& batch) = 0;
  /// Bytes that were consumed and not taken by the kernel yet: send() goes on with them.
  virtual std::size_t unsent() const = 0;

  struct Received {
    Status status;         // kUnavailable: the peer closed the connection, or the socket failed;
                           // kInvalidArgument: the peer violates the format
    bool drained = false;  // there is no more to be had now
  };
  /// Receives some bytes, and gives frames that are complete to the sink.
  virtual Received receive(int fd, FrameReader& reader, FrameSink& sink) = 0;
  /// Whether receive() has something to give without the socket becoming readable.
  virtual bool holds_frames() const = 0;
  /// From inside of receive(), by the sink: what is left of the bytes is not for this reader any
  /// more.
  virtual void abandon() = 0;
};

/// The bytes as they are. Descriptors travel too where `passes_descriptors`: on Unix sockets.
class PlainStream : public SocketStream {
 public:
  explicit PlainStream(bool passes_descriptors) : passes_descriptors_(passes_descriptors) {}
  Sent send(int fd, const FrameWriter::Batch& batch) override;
  std::size_t unsent() const override { return 0; }
  Received receive(int fd, FrameReader& reader, FrameSink& sink) override;
  bool holds_frames() const override { return false; }
  void abandon() override {}

 private:
  const bool passes_descriptors_;
};

/// The bytes in records, encrypted and authenticated. No descriptors.
class SealedStream : public SocketStream {
 public:
  SealedStream(const SymmetricKey& sending, const SymmetricKey& receiving);
  Sent send(int fd, const FrameWriter::Batch& batch) override;
  std::size_t unsent() const override { return sealed_end_ - sealed_begin_; }
  Received receive(int fd, FrameReader& reader, FrameSink& sink) override;
  bool holds_frames() const override;
  void abandon() override { abandoned_ = true; }

 private:
  std::size_t seal(const FrameWriter::Batch& batch);
  Received fill(int fd);
  void make_room();
  /// The size of the record that begins at held_begin_; 0: its header is not here yet.
  Result<std::size_t> next_record() const;
  Status open(std::span<std::byte> record, FrameReader& reader, FrameSink& sink);

  RecordCipher sealer_;
  std::size_t record_text_max_;  // of the next record
  std::unique_ptr<std::byte[]> sealed_;
  std::size_t sealed_room_ = 0;
  std::size_t sealed_begin_ = 0;
  std::size_t sealed_end_ = 0;

  RecordCipher opener_;
  std::vector<std::byte> held_;  // received, not opened
  std::size_t held_begin_ = 0;
  std::size_t held_end_ = 0;
  bool abandoned_ = false;
  Status broken_;  // of the first record that was not the peer's: none behind it counts
};

}  // namespace runtime
