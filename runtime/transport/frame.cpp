#include "runtime/transport/frame.h"

#include <bit>
#include <cstring>

#include "runtime/core/check.h"

namespace runtime {

static_assert(std::endian::native == std::endian::little,
              "the wire is little-endian and headers are copied as they are");

namespace {

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <class T>
T take(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

bool is_reply(FrameKind kind) {
  return kind == FrameKind::kCallReply || kind == FrameKind::kControlReply ||
         kind == FrameKind::kObjectReply;
}

FrameKind reply_kind(FrameKind request) {
  CHECK(request == FrameKind::kCall || request == FrameKind::kControl ||
        request == FrameKind::kObject);
  return static_cast<FrameKind>(static_cast<std::uint16_t>(request) + 1);
}

Message reply_to(const Message& request, Buffer meta, Payload payload) {
  Message reply;
  reply.kind = reply_kind(request.kind);
  reply.id = request.id;
  reply.meta = std::move(meta);
  reply.payload = std::move(payload);
  return reply;
}

void FrameHeader::encode(std::span<std::byte, kBytes> out) const {
  put(out.data(), meta_bytes);
  put(out.data() + 4, kind);
  put(out.data() + 6, fd_count);
  put(out.data() + 7, std::uint8_t{0});  // reserved flags
  put(out.data() + 8, id);
  put(out.data() + 16, payload_bytes);
}

Result<FrameHeader> FrameHeader::decode(std::span<const std::byte, kBytes> raw,
                                        std::uint64_t meta_bytes_max,
                                        std::uint64_t payload_bytes_max) {
  FrameHeader header;
  header.meta_bytes = take<std::uint32_t>(raw.data());
  header.kind = take<std::uint16_t>(raw.data() + 4);
  header.fd_count = take<std::uint8_t>(raw.data() + 6);
  header.id = take<std::uint64_t>(raw.data() + 8);
  header.payload_bytes = take<std::uint64_t>(raw.data() + 16);
  if (header.kind < 1 || header.kind > static_cast<std::uint16_t>(FrameKind::kActivity)) {
    return invalid_argument("frame of unknown kind " + std::to_string(header.kind));
  }
  if (raw[7] != std::byte{0})
    return invalid_argument("frame with unknown flags " + std::to_string(static_cast<int>(raw[7])));
  if (header.fd_count > kFdsPerFrameMax) {
    return invalid_argument("frame with " + std::to_string(header.fd_count) +
                            " descriptors: at most " + std::to_string(kFdsPerFrameMax));
  }
  if (header.meta_bytes % 8 != 0) {
    return invalid_argument("frame with a message of " + std::to_string(header.meta_bytes) +
                            " bytes: not whole words");
  }
  if (header.meta_bytes > meta_bytes_max) {
    return invalid_argument("frame with a message of " + std::to_string(header.meta_bytes) +
                            " bytes: at most " + std::to_string(meta_bytes_max));
  }
  if (header.payload_bytes > payload_bytes_max) {
    return invalid_argument("frame with a payload of " + std::to_string(header.payload_bytes) +
                            " bytes: at most " + std::to_string(payload_bytes_max));
  }
  return header;
}

}  // namespace runtime
