// The control requests that carry an id, by which the head knows a repetition.
#pragma once

#include "runtime/control/control.h"

namespace runtime {

/// Whether what a request does, or is answered with, depends on whether it has run before. The head
/// remembers the answers to these; all others may run twice (docs/wire.md has the table).
bool carries_id(const ControlRequest::Body& body);

/// Gives the request an id if it carries one and has none yet. Its sender does so once, and sends
/// the same id with each repetition.
void identify(ControlRequest& request);

}  // namespace runtime
