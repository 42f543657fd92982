// The supervisor of a program: a process between a node and the program, to which all that the
// program started belongs, in sessions and process groups of its own too.
#pragma once

#include <sys/types.h>

namespace runtime {

/// What the node tells a supervisor, a byte each. The end of the pipe means kKill: the node died.
enum class SupervisorOrder : char {
  kWait = 'w',  // its program was told to end: what it started has time to end after it
  kKill = 'k',  // everything is to end now
};

/// In a child of fork(), before the program is forked: orphans become this process's children.
void adopt_orphans();

/// Waits for the program, its child, and for all that this started, and ends as the program did.
/// Where the program ends without an order to wait, the rest is killed. `orders`: the node's pipe.
/// All other descriptors are closed. Allocates nothing and takes no locks: runs after fork().
[[noreturn]] void supervise(pid_t program, int orders);

}  // namespace runtime
