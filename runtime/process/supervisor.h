// The supervisor of a program: a process between a node and the program. All that the program
// started belongs to it, in its own sessions and process groups too. A second one stands above it,
// since a program of the same user can kill or stop its parent.
#pragma once

#include <sys/types.h>

namespace runtime {

/// What the node tells the supervisors, a byte each. The end of the socket means kKill: the node
/// died.
enum class SupervisorOrder : char {
  kWait = 'w',  // their program was told to end: what it started has time to end after it
  kKill = 'k',  // everything is to end now
};

/// In a child of fork(), before the program is forked: orphans become this process's children.
void adopt_orphans();

/// Waits for the program, its child, and for all that this started, and ends as the program did.
/// Where the program ends without an order to wait, the rest is killed, and so is all when the
/// keeper, its parent, has ended. `orders`: the node's socket, which both read. All other
/// descriptors are closed. Allocates nothing and takes no locks: runs after fork().
[[noreturn]] void supervise(pid_t program, pid_t keeper, int orders);

/// The keeper of a supervisor, its child. It makes a supervisor that was stopped go on, and ends as
/// that did. It does the supervisor's work when that was killed or does not do it. Else as
/// supervise().
[[noreturn]] void keep_supervisor(pid_t supervisor, int orders);

}  // namespace runtime
