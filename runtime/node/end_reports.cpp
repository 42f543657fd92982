#include "runtime/node/end_reports.h"

#include <chrono>
#include <utility>

#include "runtime/core/log.h"

namespace runtime {

namespace {

// Longer than a node waits for its head.
constexpr auto kReportTimeout = std::chrono::hours(24);
// How N processes ended is remembered, for callers that ask why an object is lost.
constexpr std::size_t kCausesMax = 1000;

}  // namespace

void EndReports::actor_ended(JobId job, control::ActorExited exited) {
  const DeathCause cause = exited.cause;
  report(job, cause, {{exited.actor, exited.incarnation}}, std::move(exited));
}

void EndReports::actors_ended(JobId job, control::ActorsExited exited) {
  const DeathCause cause = exited.cause;
  const std::vector<control::ActorInstance> ended = exited.actors;
  report(job, cause, ended, std::move(exited));
}

void EndReports::report(JobId job, const DeathCause& cause,
                        const std::vector<control::ActorInstance>& ended,
                        ControlRequest::Body body) {
  if (causes_.size() >= kCausesMax) causes_.erase(causes_.begin());
  causes_[cause.pid] = cause.text;
  actors_.insert(ended.begin(), ended.end());
  tell(std::move(body), job, lifetime_.guard([this, ended] {
    for (const control::ActorInstance& actor : ended) actors_.erase(actor);
  }));
}

void EndReports::job_ended(JobId job, JobOutcome outcome, const DeathCause& cause) {
  jobs_.insert(job);
  tell(control::EndJob{job, outcome, cause, unix_milliseconds(), false, false}, job,
       lifetime_.guard([this, job] { jobs_.erase(job); }));
}

void EndReports::tell(ControlRequest::Body body, JobId job, UniqueFunction<void()> confirmed) {
  head_(ControlRequest{job, kReportTimeout, std::move(body)},
        [confirmed = std::move(confirmed)](Result<ControlAnswer> answer) mutable {
          if (!answer.ok() && answer.status().code() != ErrorCode::kUnavailable)
            LOG(warn, "the head: {}", answer.status().message());
          if (answer.ok() && confirmed) confirmed();
        });
}

std::string EndReports::how_ended(pid_t pid) const {
  auto known = causes_.find(pid);
  return known == causes_.end() ? std::string() : known->second;
}

}  // namespace runtime
