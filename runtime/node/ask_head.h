// Requests of a node's parts to the head.
#pragma once

#include <functional>

#include "runtime/control/control.h"

namespace runtime {

/// Sends the head a request, which waits while the head is away; the answer comes on the loop.
using AskHead = std::function<void(ControlRequest request, ControlAnswerer answer)>;

}  // namespace runtime
