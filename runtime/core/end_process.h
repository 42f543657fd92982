// Ending this process without further ado.
#pragma once

namespace runtime {

/// By SIGKILL, or (with no signal) by _exit(0). In a simulation it returns, and the simulated
/// process ends soon.
void end_process(int signal);

}  // namespace runtime
