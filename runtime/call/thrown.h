// The status for an exception that left a user's code.
#pragma once

#include <exception>

#include "runtime/core/status.h"

namespace runtime {

/// kTaskFailed "threw: ..." with what it says; a Status that was thrown is itself. Null, which is
/// what the end of a thread looks like, ends the process: the thread was the runtime's.
Status status_of(std::exception_ptr failure);

}  // namespace runtime
