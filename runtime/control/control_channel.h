// Control requests, answers and events over a channel.
#pragma once

#include <memory>

#include "runtime/control/control.h"
#include "runtime/transport/channel.h"

namespace runtime {

/// How much longer than the request's own timeout its sender waits: the peer's reason at the
/// deadline says more than silence.
inline constexpr std::chrono::milliseconds kControlGrace{500};

/// Sends the request; `answer` runs once on the loop, with what the peer answered or with why there
/// is no answer.
void send_request(Channel& channel, const ControlRequest& request, ControlAnswerer answer);

/// Answers a received request on its channel. Dropping it unanswered leaves the peer to its
/// deadline.
ControlAnswerer answerer_for(const std::shared_ptr<Channel>& channel, const Message& request);

/// One way. A failure is logged: the peer is gone or too slow, and its connection's end says the
/// rest.
void send_event(Channel& channel, const ControlEvent& event);

/// What a connection's preamble names to reach the head behind the node next to it.
WorkerId head_target();

/// Of a connection that outlives its sockets: one that was closed tells of a dead process, unless
/// that comes back at once. About one that fell silent the leases decide.
void close_unless_back(EventLoop& loop, const std::shared_ptr<Channel>& channel);

}  // namespace runtime
