// The lines that a worker writes to its log before it dies of a signal.
#pragma once

#include <string>

namespace runtime {

/// Installs handlers for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT. They write the signal and a
/// backtrace with function names to stderr, then let the signal end the process. Also tells of an
/// exception that was not caught. `who` begins the message ("worker 7f3a"). Call once in main; the
/// handlers run on their own stack, so that an overflow of the main thread's is reported too.
void install_crash_handler(const std::string& who);

}  // namespace runtime
