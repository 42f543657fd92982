// The signal handler by which a worker's thread writes its stack when its node asks.
#pragma once

#include <memory>

#include "runtime/observe/activity_page.h"

namespace runtime {

/// Installs the handler of a real-time signal, unless the program has one for it, and says in the
/// page which. Once in a process, whose page this is for good. A system call that the signal
/// interrupts is restarted where the kernel does that, as under a debugger.
void install_stack_handler(std::shared_ptr<ActivityPage> page);

/// What the signal carries: which slot of the page the thread writes to, and the number of the
/// request.
inline std::uint64_t stack_order(std::uint64_t request, std::size_t slot) {
  return request << 8 | slot;
}

}  // namespace runtime
