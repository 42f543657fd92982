// SubmittedJobs: programs that were submitted to a node, from their record to their end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/core/lifetime.h"
#include "runtime/job/job_fetcher.h"
#include "runtime/job/job_files.h"
#include "runtime/job/job_runner.h"
#include "runtime/node/ask_head.h"
#include "runtime/node/end_reports.h"
#include "runtime/process/job_user.h"

namespace runtime {

struct SubmittedJobsOptions {
  JobRunnerOptions runner;
  std::vector<std::string> gpu_names;  // what CUDA_VISIBLE_DEVICES has for each GPU of the node
  std::function<bool()> is_stopping;   // the node is: nothing begins any more
};

/// Lives on the event loop.
class SubmittedJobs {
 public:
  /// Folders come from `files`, and are offered to other nodes by `fetcher`.
  SubmittedJobs(EventLoop& loop, SubmittedJobsOptions options, AskHead head, EndReports& ends,
                JobFiles& files, JobFetcher& fetcher);
  SubmittedJobs(const SubmittedJobs&) = delete;
  SubmittedJobs& operator=(const SubmittedJobs&) = delete;

  /// Room for one more? kResourceExhausted: no.
  Status check_room() const { return runner_.check_room(); }
  /// Has the head record it, makes its folder, starts it as `user` (nothing: the node's). Answers
  /// once it runs, or with why it does not. A job that has a place runs on its GPUs.
  void start(JobInfo info, control::SubmitJob request, std::optional<JobUser> user,
             std::shared_ptr<Channel> submitter, ControlAnswerer answer);

  /// Whether the job's process runs here.
  bool runs(JobId job) const { return runner_.runs(job); }
  std::vector<JobId> running() const { return runner_.running(); }
  /// Null: it is not one of those that have run here and not ended.
  const JobInfo* find(JobId job) const;
  /// Also one whose process does not run yet.
  bool contains(JobId job) const { return runs(job) || starts_.contains(job); }
  /// The number of jobs that a user has here.
  std::size_t count_of(const std::string& user) const;
  void list(std::set<JobId>& to) const;

  /// Of one that contains() has. Errors: as JobRunner::cancel.
  Status cancel(JobId job, const std::string& reason);
  void on_submitter_closed(const Channel& channel) { runner_.on_submitter_closed(channel); }
  void end_all(std::function<void()> done) { runner_.end_all(std::move(done)); }

 private:
  struct Start;  // until its process runs
  using StartPtr = std::shared_ptr<Start>;

  void find_gpus(const StartPtr& start);
  void prepare(const StartPtr& start);
  void run(const StartPtr& start, const JobFolder& folder);
  void fail(const StartPtr& start, JobOutcome outcome, const Status& why);
  void on_end(JobId job, JobOutcome outcome, const DeathCause& cause);

  const std::vector<std::string> gpu_names_;
  const std::function<bool()> is_stopping_;
  const AskHead head_;
  EndReports& ends_;
  JobFiles& files_;
  JobFetcher& fetcher_;
  std::map<JobId, StartPtr> starts_;
  std::map<JobId, JobInfo> running_;
  JobRunner runner_;
  Lifetime lifetime_;
};

}  // namespace runtime
