// Channel::Lasting: the state of a connection that outlives its socket. Private to
// runtime/transport.
//
// Both sides number the frames that they send, from 1, and keep each until the other one has
// confirmed it (kConfirm). When the socket breaks, the side that had connected connects again. The
// Hellos of both sides tell how many frames they have, and each sends the rest again. So every
// frame is delivered once and in order. If no new socket comes in time, the connection has ended,
// as others do at once.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/core/timer.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/frame_writer.h"

namespace runtime {

/// After this many frames, or bytes, a receiver confirms: what its peer keeps for it stays about as
/// small as that.
inline constexpr std::uint64_t kConfirmFrames = 64;
inline constexpr std::size_t kConfirmBytes = 256 << 10;

/// Guarded by the channel's mutex, except where it says otherwise.
struct Channel::Lasting {
  Lasting(EventLoop& loop, std::uint64_t id, std::function<void()> when_interrupted)
      : session(id), on_interrupt(std::move(when_interrupted)), give_up(loop.context()) {}

  const std::uint64_t session;
  const std::function<void()> on_interrupt;  // of the side that connects: brings a new socket
  std::function<void()> watcher;             // Channel::set_on_interrupt
  bool interrupted = false;                  // there is no socket
  std::uint64_t epoch = 0;      // of the socket: what belongs to an older one counts no more
  Status why;                   // of the interruption
  std::deque<Message> kept;     // sent and not confirmed
  std::uint64_t confirmed = 0;  // by the peer: the number of the frame before the first of `kept`
  std::size_t kept_bytes = 0;

  // Touched on the loop only.
  Timer give_up;
  std::uint64_t received = 0;
  std::uint64_t confirmed_to_peer = 0;  // of those received
  std::size_t unconfirmed_bytes = 0;

  void keep(const Message& message) {
    kept.push_back({message.kind, message.id, message.meta, message.payload, {}});
    kept_bytes += FrameWriter::wire_bytes(message);
  }

  /// False: the peer claims what cannot be. What is dropped goes to `spent`, to be destroyed
  /// outside of locks.
  bool confirm(std::uint64_t through, std::vector<Message>& spent) {
    if (through < confirmed || through - confirmed > kept.size()) return false;
    for (; confirmed < through; ++confirmed) {
      kept_bytes -= FrameWriter::wire_bytes(kept.front());
      spent.push_back(std::move(kept.front()));
      kept.pop_front();
    }
    return true;
  }

  /// What the peer has not got; the rest that it has got and will only confirm with more is not
  /// counted.
  std::size_t queued_bytes() const {
    return kept_bytes > kConfirmBytes ? kept_bytes - kConfirmBytes : 0;
  }
};

}  // namespace runtime
