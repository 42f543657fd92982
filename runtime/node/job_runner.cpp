#include "runtime/node/job_runner.h"

#include <filesystem>

#include "runtime/core/log.h"
#include "runtime/node/child_process.h"
#include "runtime/control/control_channel.h"
#include "runtime/node/process_output.h"

namespace runtime {

namespace fs = std::filesystem;

struct JobRunner::Job {
  explicit Job(LogFile log_file) : log(std::move(log_file)) {}

  JobId id;
  std::shared_ptr<Channel> submitter;
  LogFile log;
  bool cancelled = false;
  std::unique_ptr<ChildProcess> process;
};

JobRunner::JobRunner(EventLoop& loop, JobRunnerOptions options, std::function<void(JobId)> on_end)
    : loop_(loop), options_(std::move(options)), on_end_(std::move(on_end)) {}

JobRunner::~JobRunner() = default;

Result<std::int32_t> JobRunner::start(JobId id, const control::SubmitJob& request, std::shared_ptr<Channel> submitter) {
  if (request.argv.empty() || request.argv[0].empty()) return invalid_argument("no command to run");
  if (jobs_.size() >= options_.jobs_max) return resource_exhausted(std::to_string(jobs_.size()) + " submitted jobs run already");
  auto log = LogFile::open(fs::path(options_.session_dir) / "logs" / ("job-" + id.hex() + ".log"));
  if (!log.ok()) return log.status();
  auto job = std::make_shared<Job>(std::move(*log));
  job->id = id;
  job->submitter = std::move(submitter);

  ProcessSpec spec;
  spec.program = request.argv[0];
  spec.argv = request.argv;
  spec.working_dir = request.working_dir;
  for (const auto& [name, value] : request.env) spec.env.push_back(name + "=" + value);
  spec.env.push_back("STARLING_ADDRESS=" + options_.node_address);
  spec.env.push_back("STARLING_TOKEN_FILE=" + options_.token_file);
  spec.env.push_back("STARLING_JOB=" + id.hex());
  ProcessHandlers handlers;
  handlers.on_output = [this, weak = std::weak_ptr<Job>(job)](bool is_stderr, std::string_view bytes) {
    if (auto alive = weak.lock()) on_output(alive, is_stderr, bytes);
  };
  handlers.on_exit = [this, id](DeathCause cause) { on_exit(id, std::move(cause)); };
  auto process = ChildProcess::start(loop_, spec, std::move(handlers));
  if (!process.ok()) return process.status();
  job->process = std::move(*process);
  jobs_[id] = job;
  LOG(info, "job {} (pid {}) runs {}", id.short_hex(), job->process->pid(), request.argv[0]);
  return job->process->pid();
}

void JobRunner::on_output(const std::shared_ptr<Job>& job, bool is_stderr, std::string_view bytes) {
  job->log.append(bytes);
  if (job->submitter->closed()) return;
  send_event(*job->submitter, control::JobOutput{job->id, is_stderr, std::string(bytes)});
  if (job->submitter->queued_bytes() > options_.queued_bytes_max) {
    job->process->pause_output(true);
    resume_later(job);
  }
}

void JobRunner::resume_later(const std::shared_ptr<Job>& job) {
  job->submitter->when_drained(options_.queued_bytes_max / 2, [weak = std::weak_ptr<Job>(job)] {
    if (auto waiting = weak.lock()) waiting->process->pause_output(false);
  });
}

void JobRunner::on_exit(JobId id, DeathCause cause) {
  auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  std::shared_ptr<Job> job = found->second;
  jobs_.erase(found);
  LOG(info, "job {} {}", id.short_hex(), cause.text);
  if (!job->submitter->closed()) send_event(*job->submitter, control::JobExited{id, std::move(cause)});
  on_end_(id);
  if (jobs_.empty() && on_empty_) std::exchange(on_empty_, nullptr)();
}

std::vector<JobId> JobRunner::running() const {
  std::vector<JobId> running;
  for (const auto& [id, job] : jobs_) running.push_back(id);
  return running;
}

Status JobRunner::cancel(JobId id) {
  auto found = jobs_.find(id);
  if (found == jobs_.end()) return not_found("no submitted job " + id.short_hex() + " runs on this node");
  Job& job = *found->second;
  job.process->end(job.cancelled ? std::chrono::milliseconds(0) : options_.cancel_grace);
  job.cancelled = true;
  return {};
}

void JobRunner::on_submitter_closed(const Channel& channel) {
  for (const auto& [id, job] : jobs_) {
    if (job->submitter.get() != &channel) continue;
    LOG(info, "job {}: whoever submitted it is gone", id.short_hex());
    Status cancelled = cancel(id);
    if (!cancelled.ok()) LOG(warn, "{}", cancelled.message());
  }
}

void JobRunner::end_all(std::function<void()> done) {
  if (jobs_.empty()) return done();
  on_empty_ = std::move(done);
  for (const auto& [id, job] : jobs_) job->process->end(std::chrono::milliseconds(1000));
}

}  // namespace runtime
