#include "runtime/node/submitted_jobs.h"

#include <utility>

#include "runtime/node/job_record.h"
#include "runtime/process/gpus.h"

namespace runtime {

struct SubmittedJobs::Start {
  JobInfo info;
  control::SubmitJob request;
  std::optional<JobUser> user;
  std::vector<std::uint32_t> gpus;  // of this node's, by number, that are the job's
  std::shared_ptr<Channel> submitter;
  ControlAnswerer answer;
  std::string stop_reason;  // not empty: it was told to end before it ran
};

SubmittedJobs::SubmittedJobs(EventLoop& loop, SubmittedJobsOptions options, AskHead head,
                             EndReports& ends, JobFiles& files, JobFetcher& fetcher)
    : gpu_names_(std::move(options.gpu_names)),
      is_stopping_(std::move(options.is_stopping)),
      head_(std::move(head)),
      ends_(ends),
      files_(files),
      fetcher_(fetcher),
      runner_(loop, std::move(options.runner),
              [this](JobId job, JobOutcome outcome, const DeathCause& cause) {
                on_end(job, outcome, cause);
              }) {}

void SubmittedJobs::start(JobInfo info, control::SubmitJob request, std::optional<JobUser> user,
                          std::shared_ptr<Channel> submitter, ControlAnswerer answer) {
  auto start = std::make_shared<Start>();
  start->info = std::move(info);
  start->request = std::move(request);
  start->user = std::move(user);
  start->submitter = std::move(submitter);
  start->answer = std::move(answer);
  const JobId job = start->info.job;
  starts_[job] = start;
  // First the record: what runs is known, whatever happens next.
  head_(ControlRequest{job, kJobHeadTimeout, control::StartJob{start->info, {}}},
        lifetime_.guard([this, start](Result<ControlAnswer> known) {
          if (known.status().code() == ErrorCode::kInvalidArgument) {
            starts_.erase(start->info.job);  // it is another's: not ours to end
            return start->answer(known.status().with_context("the head"));
          }
          if (!known.ok())
            return fail(start, JobOutcome::kFailed, known.status().with_context("the head"));
          start->info.place.is_none() ? prepare(start) : find_gpus(start);
        }));
}

void SubmittedJobs::find_gpus(const StartPtr& start) {
  control::QueryGroup query;
  query.group = start->info.place;
  head_(ControlRequest{start->info.job, kJobHeadTimeout, std::move(query)},
        lifetime_.guard([this, start](Result<ControlAnswer> found) {
          if (!found.ok())
            return fail(start, JobOutcome::kFailed,
                        found.status().with_context("what it reserves"));
          const auto* place = std::get_if<GroupState>(&*found);
          if (place && place->job != start->info.job)
            return fail(start, JobOutcome::kFailed,
                        invalid_argument("what it reserves is another job's"));
          if (place && !place->gpus.empty()) start->gpus = place->gpus.front();
          prepare(start);
        }));
}

void SubmittedJobs::prepare(const StartPtr& start) {
  control::SubmitJob& request = start->request;
  if (!request.working_dir.empty() && request.program.path.empty())
    return run(start, JobFolder{request.working_dir, {}});
  files_.unpack(start->info.job, request.files, request.program, start->user,
                [this, start](Result<JobFolder> folder) {
                  if (folder.ok())
                    run(start, *folder);
                  else
                    fail(start, JobOutcome::kFailed, folder.status());
                });
}

void SubmittedJobs::run(const StartPtr& start, const JobFolder& folder) {
  const control::SubmitJob& request = start->request;
  if (start->stop_reason.empty() && is_stopping_()) start->stop_reason = "its node was stopped";
  if (start->stop_reason.empty() && !request.detached && start->submitter->closed())
    start->stop_reason = "its submitter is gone";
  if (!start->stop_reason.empty())
    return fail(start, JobOutcome::kStopped, cancelled(start->stop_reason));
  JobInfo& info = start->info;
  JobStart job;
  job.job = info.job;
  job.argv = request.argv;
  job.program = folder.program.string();
  job.working_dir = request.working_dir.empty() ? folder.work.string() : request.working_dir;
  job.env = request.env;
  if (!start->gpus.empty()) {
    for (auto& [name, value] : gpu_environment(gpu_names_, start->gpus)) job.env[name] = value;
  }
  job.user = start->user;
  if (!request.detached) job.submitter = start->submitter;
  auto pid = runner_.start(job);
  if (!pid.ok()) return fail(start, JobOutcome::kFailed, pid.status());
  starts_.erase(info.job);
  if (request.working_dir.empty()) fetcher_.offer(info.job, std::move(start->request.files));
  info.pid = *pid;
  running_[info.job] = info;
  ends_.tell(control::StartJob{info, {}}, info.job);
  start->answer(ControlAnswer{info.job});
}

void SubmittedJobs::fail(const StartPtr& start, JobOutcome outcome, const Status& why) {
  starts_.erase(start->info.job);
  on_end(start->info.job, outcome,
         cause_of((outcome == JobOutcome::kStopped ? "" : "it could not be started: ") +
                  why.message()));
  start->answer(why);
}

void SubmittedJobs::on_end(JobId job, JobOutcome outcome, const DeathCause& cause) {
  running_.erase(job);
  ends_.job_ended(job, outcome, cause);
}

const JobInfo* SubmittedJobs::find(JobId job) const {
  const auto found = running_.find(job);
  return found == running_.end() ? nullptr : &found->second;
}

std::size_t SubmittedJobs::count_of(const std::string& user) const {
  std::size_t count = 0;
  for (const auto& [job, start] : starts_) count += start->info.user == user;
  for (const auto& [job, info] : running_) count += info.user == user;
  return count;
}

void SubmittedJobs::list(std::set<JobId>& to) const {
  for (const auto& [job, start] : starts_) to.insert(job);
  for (const auto& [job, info] : running_) to.insert(job);
}

Status SubmittedJobs::cancel(JobId job, const std::string& reason) {
  if (runner_.runs(job)) return runner_.cancel(job, reason);
  starts_.at(job)->stop_reason = reason;
  return {};
}

}  // namespace runtime
