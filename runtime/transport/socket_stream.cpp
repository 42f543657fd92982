#include "runtime/transport/socket_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace {

// What is sealed at once. It is small enough to stay in the processor's caches until the kernel has
// copied it. It is enough for the kernel to continue sending while the next is sealed. With 128
// KiB, `bbr`, which paces by what it has seen sent, settles at a third of this rate.
constexpr std::size_t kSealedBatchBytes = 16 * kRecordTextMax;
// A buffer that a large payload needed is given back by the first small batch behind it.
constexpr std::size_t kKeptSealedBytes = 2 * kRecordTextMax;
// The first records are small. Over a link that breaks again and again, what is in a record that
// did not arrive whole is sent again. They grow with what has been sent.
constexpr std::size_t kFirstRecordText = 2 << 10;
// An idle connection's buffer; one that receives much gets the larger one.
constexpr std::size_t kHeldBytesMin = 8 << 10;
constexpr std::size_t kHeldBytesMax = 4 * (kRecordTextMax + kRecordOverheadBytes);

constexpr std::size_t kPiecesMax = FrameWriter::kPiecesPerBatchMax;

/// The first `bytes` of the pieces, behind `skip` of them.
std::span<const iovec> take_bytes(std::span<const iovec> pieces, std::size_t skip,
                                  std::size_t bytes, std::array<iovec, kPiecesMax>& into) {
  std::size_t count = 0;
  for (const iovec& piece : pieces) {
    if (skip >= piece.iov_len) {
      skip -= piece.iov_len;
      continue;
    }
    if (bytes == 0) break;
    const std::size_t step = std::min(bytes, piece.iov_len - skip);
    into[count++] = {static_cast<std::byte*>(piece.iov_base) + skip, step};
    bytes -= step;
    skip = 0;
  }
  return {into.data(), count};
}

Status closed_by_peer(bool mid_frame) {
  return unavailable(mid_frame ? "closed the connection in the middle of a frame"
                               : "closed the connection");
}

// As a broken link: a lasting connection continues over another socket.
Status changed_on_its_way() { return unavailable("a record was changed on its way"); }

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

// ---- PlainStream

SocketStream::Sent PlainStream::send(int fd, const FrameWriter::Batch& batch) {
  msghdr header{};
  header.msg_iov = const_cast<iovec*>(batch.pieces.data());
  header.msg_iovlen = batch.count;
  alignas(cmsghdr) char control[CMSG_SPACE(kFdsPerFrameMax * sizeof(int))];
  if (!batch.fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(batch.fds.size() * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(batch.fds.size() * sizeof(int));
    int fds[kFdsPerFrameMax];
    for (std::size_t i = 0; i < batch.fds.size(); ++i) fds[i] = batch.fds[i].get();
    std::memcpy(CMSG_DATA(rights), fds, batch.fds.size() * sizeof(int));
  }
  const ssize_t sent = ::sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return {0, errno};
  return {static_cast<std::size_t>(sent), 0};
}

SocketStream::Received PlainStream::receive(int fd, FrameReader& reader, FrameSink& sink) {
  auto pieces = reader.prepare();
  std::size_t room = 0;
  for (const iovec& piece : pieces) room += piece.iov_len;
  msghdr header{};
  header.msg_iov = const_cast<iovec*>(pieces.data());
  header.msg_iovlen = pieces.size();
  alignas(cmsghdr) char control[CMSG_SPACE(kFdsPerFrameMax * sizeof(int))];
  if (passes_descriptors_) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  const ssize_t received = ::recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (received < 0) {
    if (would_block(errno)) return {{}, true};
    if (errno == EINTR) return {};
    return {errno_status(errno, "receiving"), false};
  }
  Status status;
  bool carried_fds = false;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    carried_fds = true;
    for (std::size_t at = 0; at + sizeof(int) <= part->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int passed = -1;
      std::memcpy(&passed, CMSG_DATA(part) + at, sizeof passed);
      FileDescriptor owned(passed);  // each is taken over first, so that none leaks
      if (status.ok()) status = reader.add_fd(std::move(owned));
    }
  }
  if (received == 0) return {closed_by_peer(reader.mid_frame()), false};
  if (status.ok() && (header.msg_flags & MSG_CTRUNC) != 0)
    status = invalid_argument("descriptors were lost on the way");
  if (status.ok()) status = reader.commit(static_cast<std::size_t>(received), sink);
  // A receive on a Unix socket also ends where descriptors were attached; else a short one means
  // that there is no more.
  return {std::move(status), static_cast<std::size_t>(received) < room && !carried_fds};
}

// ---- SealedStream

SealedStream::SealedStream(const SymmetricKey& sending, const SymmetricKey& receiving)
    : sealer_(sending, RecordCipher::Use::kSeal),
      record_text_max_(kFirstRecordText),
      opener_(receiving, RecordCipher::Use::kOpen),
      held_(kHeldBytesMin) {}

std::size_t SealedStream::seal(const FrameWriter::Batch& batch) {
  const std::span<const iovec> pieces(batch.pieces.data(), batch.count);
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  bytes = std::min(bytes, kSealedBatchBytes);
  const std::size_t records = bytes / kFirstRecordText + 1;  // of the smallest size
  const std::size_t room = bytes + records * kRecordOverheadBytes;
  if (room > sealed_room_ || (sealed_room_ > kKeptSealedBytes && room <= kKeptSealedBytes / 2)) {
    sealed_ = std::make_unique_for_overwrite<std::byte[]>(room);
    sealed_room_ = room;
  }
  sealed_begin_ = sealed_end_ = 0;
  std::array<iovec, kPiecesMax> text;
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t step = std::min(record_text_max_, bytes - at);
    sealed_end_ += sealer_.seal(take_bytes(pieces, at, step, text),
                                std::span(sealed_.get(), sealed_room_).subspan(sealed_end_));
    at += step;
    record_text_max_ = std::min(kRecordTextMax, record_text_max_ + step);
  }
  return bytes;
}

SocketStream::Sent SealedStream::send(int fd, const FrameWriter::Batch& batch) {
  Sent sent;
  if (unsent() == 0) sent.consumed = seal(batch);
  const ssize_t taken =
      ::send(fd, sealed_.get() + sealed_begin_, unsent(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (taken < 0) {
    sent.error = errno;
  } else {
    sealed_begin_ += static_cast<std::size_t>(taken);
  }
  return sent;
}

Result<std::size_t> SealedStream::next_record() const {
  const std::span held = std::span(held_).subspan(held_begin_, held_end_ - held_begin_);
  if (held.size() < kRecordHeaderBytes) return std::size_t{0};
  auto text = RecordCipher::text_bytes(held.first<kRecordHeaderBytes>());
  if (!text.ok()) return text.status();
  return *text + kRecordOverheadBytes;
}

bool SealedStream::holds_frames() const {
  if (!broken_.ok()) return false;
  auto record = next_record();
  return !record.ok() || (*record > 0 && held_end_ - held_begin_ >= *record);
}

void SealedStream::make_room() {
  if (held_begin_ > 0) {
    std::memmove(held_.data(), held_.data() + held_begin_, held_end_ - held_begin_);
    held_end_ -= held_begin_;
    held_begin_ = 0;
  }
  // A record larger than the buffer, or a peer that sends faster than is read here.
  auto record = next_record();
  const bool is_short = held_end_ == held_.size() || (record.ok() && *record > held_.size());
  if (is_short && held_.size() < kHeldBytesMax) held_.resize(kHeldBytesMax);
}

SocketStream::Received SealedStream::fill(int fd) {
  make_room();
  const std::size_t room = held_.size() - held_end_;
  const ssize_t received = ::recv(fd, held_.data() + held_end_, room, MSG_DONTWAIT);
  if (received < 0) {
    if (would_block(errno)) return {{}, true};
    if (errno == EINTR) return {};
    return {errno_status(errno, "receiving"), false};
  }
  if (received == 0) return {closed_by_peer(held_end_ > held_begin_), false};
  held_end_ += static_cast<std::size_t>(received);
  if (static_cast<std::size_t>(received) == room && held_.size() < kHeldBytesMax)
    held_.resize(kHeldBytesMax);
  return {{}, static_cast<std::size_t>(received) < room};
}

SocketStream::Received SealedStream::receive(int fd, FrameReader& reader, FrameSink& sink) {
  Received result;
  if (!broken_.ok()) return {broken_, false};
  if (!holds_frames()) {
    result = fill(fd);
    if (!result.status.ok()) {
      if (reader.mid_frame() && result.status.code() == ErrorCode::kUnavailable)
        result.status = closed_by_peer(true);
      return result;
    }
  }
  auto record = next_record();
  if (!record.ok()) return {broken_ = changed_on_its_way(), false};
  if (*record == 0 || held_end_ - held_begin_ < *record) return result;
  const std::span taken = std::span(held_).subspan(held_begin_, *record);
  held_begin_ += *record;
  result.status = open(taken, reader, sink);
  broken_ = result.status;
  if (result.status.ok() && holds_frames()) result.drained = false;
  return result;
}

// A text that fits is opened where its frames will lie. One that does not is copied in parts, so
// that only what is known to be the peer's goes to the reader.
Status SealedStream::open(std::span<std::byte> record, FrameReader& reader, FrameSink& sink) {
  std::size_t missing = record.size() - kRecordOverheadBytes;
  std::byte* at = record.data() + kRecordHeaderBytes;
  std::array<iovec, kPiecesMax> pieces;
  auto room = take_bytes(reader.prepare(), 0, missing, pieces);
  std::size_t fits = 0;
  for (const iovec& piece : room) fits += piece.iov_len;
  const iovec in_place{at, missing};
  const bool direct = fits == missing;
  if (!opener_.open(record, direct ? room : std::span(&in_place, 1))) return changed_on_its_way();
  if (direct) return reader.commit(missing, sink);
  while (missing > 0 && !abandoned_) {
    room = take_bytes(reader.prepare(), 0, missing, pieces);
    std::size_t copied = 0;
    for (const iovec& piece : room) {
      std::memcpy(piece.iov_base, at + copied, piece.iov_len);
      copied += piece.iov_len;
    }
    at += copied;
    missing -= copied;
    if (Status status = reader.commit(copied, sink); !status.ok()) return status;
  }
  return {};
}

}  // namespace runtime
