#include "runtime/control/jobs.h"

namespace runtime {

std::string_view job_state(const JobInfo& job) {
  if (job.running) return job.pid == 0 ? "pending" : "running";
  switch (job.outcome) {
    case JobOutcome::kSucceeded: return "succeeded";
    case JobOutcome::kStopped: return "stopped";
    default: return "failed";
  }
}

}  // namespace runtime
