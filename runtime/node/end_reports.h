// EndReports: the ends of actors and jobs on a node, until the head has confirmed them.
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/core/lifetime.h"
#include "runtime/node/ask_head.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

/// On the event loop. Once an end is confirmed the head asks no more for that incarnation or job.
class EndReports {
 public:
  explicit EndReports(AskHead head) : head_(std::move(head)) {}
  EndReports(const EndReports&) = delete;
  EndReports& operator=(const EndReports&) = delete;

  void actor_ended(JobId job, control::ActorExited exited);
  void actors_ended(JobId job, control::ActorsExited exited);
  void job_ended(JobId job, JobOutcome outcome, const DeathCause& cause);
  /// What the head has to hear, however long it is away.
  void tell(ControlRequest::Body body, JobId job, UniqueFunction<void()> confirmed = nullptr);

  /// Those that are not confirmed yet.
  const std::set<control::ActorInstance>& actors() const { return actors_; }
  const std::set<JobId>& jobs() const { return jobs_; }
  /// How the process of actors ended that had that pid; empty: not known (any more).
  std::string how_ended(pid_t pid) const;

 private:
  void report(JobId job, const DeathCause& cause, const std::vector<control::ActorInstance>& ended,
              ControlRequest::Body body);

  const AskHead head_;
  std::set<control::ActorInstance> actors_;
  std::set<JobId> jobs_;
  std::map<pid_t, std::string> causes_;  // of the last processes of actors
  Lifetime lifetime_;
};

}  // namespace runtime
