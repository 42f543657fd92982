#include "runtime/node/job_queue.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/node/job_record.h"

namespace runtime {

void JobQueue::add(JobInfo job, const Channel& submitter, control::QueueJob request,
                   std::chrono::milliseconds patience, ControlAnswerer answer) {
  const JobId id = job.job;
  jobs_[id] = {&submitter, job.place, job.user};
  head_(ControlRequest{id, kJobHeadTimeout, control::StartJob{std::move(job), {}}},
        lifetime_.guard([this, id, patience, request = std::move(request),
                         answer = std::move(answer)](Result<ControlAnswer> known) mutable {
          if (known.ok()) return reserve(id, std::move(request), patience, std::move(answer));
          if (known.status().code() == ErrorCode::kInvalidArgument)
            jobs_.erase(id);  // it is another's: not ours to end
          else
            drop(id, JobOutcome::kStopped, known.status().message());
          answer(known.status().with_context("the head"));
        }));
}

void JobQueue::reserve(JobId job, control::QueueJob request, std::chrono::milliseconds patience,
                       ControlAnswerer answer) {
  control::CreateGroup place;
  place.spec.group = request.place;
  place.spec.bundles = {std::move(request.resources)};
  if (!request.labels.empty()) place.spec.bundle_labels = {std::move(request.labels)};
  head_(ControlRequest{job, patience, std::move(place)},
        [this, alive = lifetime_.alive(), job,
         answer = std::move(answer)](Result<ControlAnswer> placed) mutable {
          if (const auto found = *alive ? jobs_.find(job) : jobs_.end();
              *alive && placed.ok() && found != jobs_.end())
            found->second.is_placed = true;
          const bool was_stopped = placed.status().code() == ErrorCode::kCancelled;
          if (*alive && !placed.ok())
            drop(job, was_stopped ? JobOutcome::kStopped : JobOutcome::kFailed,
                 placed.status().message());
          answer(std::move(placed));
        });
}

bool JobQueue::waits_for(JobId job, GroupId place) const {
  const auto found = jobs_.find(job);
  return found != jobs_.end() && found->second.place == place;
}

bool JobQueue::is_of(JobId job, const std::string& user) const {
  const auto found = jobs_.find(job);
  return found != jobs_.end() && found->second.user == user;
}

std::size_t JobQueue::count_of(const std::string& user) const {
  return static_cast<std::size_t>(std::count_if(jobs_.begin(), jobs_.end(), [&](const auto& job) {
    return job.second.user == user && !job.second.is_placed;
  }));
}

void JobQueue::list(std::set<JobId>& to) const {
  for (const auto& [job, waiting] : jobs_) to.insert(job);
}

void JobQueue::drop(JobId job, JobOutcome outcome, const std::string& reason) {
  if (jobs_.erase(job) > 0) ends_.job_ended(job, outcome, cause_of(reason));
}

void JobQueue::on_submitter_closed(const Channel& channel) {
  std::vector<JobId> waiting;
  for (const auto& [job, queued] : jobs_) {
    if (queued.submitter == &channel) waiting.push_back(job);
  }
  for (JobId job : waiting)
    drop(job, JobOutcome::kStopped, "its submitter was gone before it started");
}

}  // namespace runtime
