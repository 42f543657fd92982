#include "runtime/api/connection.h"

#include "runtime/call/process.h"
#include "runtime/core/fork_guard.h"

namespace runtime {

bool Connection::is_forked() const { return generation != 0 && generation != fork_generation(); }

Status Connection::require_started() const {
  if (is_forked()) return forked_status();
  if (stopped) return cancelled("the runtime was stopped");
  if (!process) return unavailable("the runtime is not started: call start() or run() first");
  return {};
}

}  // namespace runtime
