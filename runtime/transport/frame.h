// Frame: the unit of traffic on an authenticated connection. docs/wire.md describes the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/transport/buffer.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

/// Zero bytes behind a payload of this size, so that the next frame is aligned.
constexpr std::uint64_t padding_of(std::uint64_t payload_bytes) {
  return (8 - payload_bytes % 8) % 8;
}

/// Says which schema a frame's message has and who handles it. Numbers never change.
enum class FrameKind : std::uint16_t {
  kHello = 1,
  kCall = 2,
  kCallReply = 3,
  kControl = 4,
  kControlReply = 5,
  kObject = 6,
  kObjectReply = 7,
  kControlEvent = 8,  // one way
  kCancel = 9,        // one way
  kAttach = 10,       // one way: the descriptor of an accepted connection, payload = its preamble
  // Of lasting connections (lasting_state.h); they have no message and are not counted
  // themselves.
  kConfirm = 11,  // one way: `id` frames were received on this connection
  kGoodbye = 12,  // one way: the sender ends the connection
  kActivity =
      13,  // one way: the descriptor of what a process says of itself (observe/activity_page.h)
};

/// Whether frames of this kind answer a request; everything else goes to the channel's handler.
bool is_reply(FrameKind kind);
/// The kind that answers a request of this kind (kCall -> kCallReply). CHECKs that there is one.
FrameKind reply_kind(FrameKind request);

/// One frame. `id` joins a reply to its request; 0 means one way. Channel::request() fills it in; a
/// handler copies it into its reply.
struct Message {
  FrameKind kind = FrameKind::kControlEvent;
  std::uint64_t id = 0;
  Buffer meta;      // a Cap'n Proto message in flat form: whole 8-byte words, aligned to 8
  Payload payload;  // raw bytes, not copied on the way (small ones into the send buffer)
  std::vector<FileDescriptor> fds;  // Unix sockets only; at most kFdsPerFrameMax
};

/// The answer to `request`: its reply kind and id, with this meta and payload.
Message reply_to(const Message& request, Buffer meta, Payload payload = {});

inline constexpr std::size_t kFdsPerFrameMax = 16;

/// The fixed start of every frame; 24 bytes, little-endian. Meta follows at once, then the payload
/// padded with zeros to 8 bytes.
struct FrameHeader {
  static constexpr std::size_t kBytes = 24;

  std::uint32_t meta_bytes = 0;  // a multiple of 8
  std::uint16_t kind = 0;
  std::uint8_t fd_count = 0;
  std::uint64_t id = 0;
  std::uint64_t payload_bytes = 0;

  void encode(std::span<std::byte, kBytes> out) const;
  /// Errors: kInvalidArgument on unknown kinds or flags, ragged meta, too many descriptors, or
  /// sizes over the limits.
  static Result<FrameHeader> decode(std::span<const std::byte, kBytes> raw,
                                    std::uint64_t meta_bytes_max, std::uint64_t payload_bytes_max);
};

}  // namespace runtime
