// The control plane's messages on the wire (schema/membership.capnp). Decoders take outside bytes:
// they never throw, bound what they read, and refuse malformed input with kInvalidArgument.
#pragma once

#include "runtime/control/control.h"
#include "runtime/core/result.h"
#include "runtime/transport/buffer.h"

namespace runtime {

Buffer encode(const ControlRequest& request);
Buffer encode(const Result<ControlAnswer>& reply);
Buffer encode(const ControlEvent& event);

/// kUnimplemented: a request of a newer protocol.
Result<ControlRequest> decode_control_request(const Buffer& meta);
/// The peer's failure is returned as this result's failure.
Result<ControlAnswer> decode_control_reply(const Buffer& meta);
Result<ControlEvent> decode_control_event(const Buffer& meta);

}  // namespace runtime
