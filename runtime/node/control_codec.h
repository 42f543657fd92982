// The control plane's messages on the wire (schema/membership.capnp). Decoders take outside bytes: they never throw, bound
// what they read, and refuse malformed input with kInvalidArgument.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/node/control.h"

namespace runtime {

/// A Cap'n Proto message as flat 8-byte words.
using ControlWords = std::vector<std::uint64_t>;

ControlWords encode(const ControlRequest& request);
ControlWords encode(const Result<ControlAnswer>& reply);
ControlWords encode(const ControlEvent& event);

/// kUnimplemented: a request of a newer protocol.
Result<ControlRequest> decode_control_request(std::span<const std::uint64_t> words);
/// The peer's failure is returned as this result's failure.
Result<ControlAnswer> decode_control_reply(std::span<const std::uint64_t> words);
Result<ControlEvent> decode_control_event(std::span<const std::uint64_t> words);

}  // namespace runtime
