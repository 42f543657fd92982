#include "runtime/job/job_runner.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "runtime/control/control_channel.h"
#include "runtime/core/log.h"
#include "runtime/process/child_process.h"
#include "runtime/process/log_file.h"
#include "runtime/process/process_output.h"
#include "runtime/process/session.h"
#include "runtime/transport/token_key.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kTailLinesMax = 20;
constexpr std::size_t kJobTailBytesMax = 4 << 10;  // it is kept with the job's record

std::string tail_of(const Tail& tail) {
  std::string text = tail.last_lines(kTailLinesMax);
  if (text.size() > kJobTailBytesMax) text.erase(0, text.size() - kJobTailBytesMax);
  return text;
}

}  // namespace

struct JobRunner::Job {
  Job(const fs::path& log_file, LogRoom* logs) : log(log_file, LogFile::kBytesMax, logs) {}

  JobId id;
  std::shared_ptr<Channel> submitter;
  LogFile log;
  Tail tail;
  std::string stop_reason;  // not empty: it was told to end
  std::unique_ptr<ChildProcess> process;
};

JobRunner::JobRunner(EventLoop& loop, JobRunnerOptions options, OnEnd on_end)
    : loop_(loop), options_(std::move(options)), on_end_(std::move(on_end)) {}

JobRunner::~JobRunner() = default;

Status JobRunner::check_room() const {
  if (jobs_.size() < options_.jobs_max) return {};
  return resource_exhausted(std::to_string(jobs_.size()) +
                            " submitted jobs run on this node already, the most there may be; stop "
                            "some (starling job stop), or submit to another node");
}

Result<std::int32_t> JobRunner::start(const JobStart& start) {
  const JobId id = start.job;
  if (start.argv.empty() || start.argv[0].empty()) return invalid_argument("no command to run");
  if (Status status = check_room(); !status.ok()) return status;
  auto job = std::make_shared<Job>(
      fs::path(options_.session_dir) / "logs" / ("job-" + id.hex() + ".log"), options_.logs);
  job->id = id;
  job->submitter = start.submitter;

  ProcessSpec spec;
  spec.supervised = true;
  spec.program = start.program.empty() ? start.argv[0] : start.program;
  spec.argv = start.argv;
  spec.working_dir = start.working_dir;
  spec.user = start.user;
  for (const auto& [name, value] : start.env) spec.env.push_back(name + "=" + value);
  spec.env.push_back("STARLING_ADDRESS=" + options_.node_address);
  // By the environment, which the kernel shows to the job's own user only; never by the command
  // line. Another user's job may do what its submitter may: with the cluster's token it could start
  // a node, and actors as this node's user.
  if (start.user) {
    spec.env.push_back("STARLING_TOKEN=" + submitter_token(options_.token.present()));
  } else {
    std::ranges::copy(token_variables(options_.token_file), std::back_inserter(spec.env));
  }
  spec.env.push_back("STARLING_JOB=" + id.hex());
  ProcessHandlers handlers;
  handlers.on_output = [this, weak = std::weak_ptr<Job>(job)](bool is_stderr,
                                                              std::string_view bytes) {
    if (auto alive = weak.lock()) on_output(alive, is_stderr, bytes);
  };
  handlers.on_exit = [this, id](DeathCause cause) { on_exit(id, std::move(cause)); };
  auto process = ChildProcess::start(loop_, spec, std::move(handlers));
  if (!process.ok()) return process.status();
  job->process = std::move(*process);
  jobs_[id] = job;
  LOG(info, "job {} (pid {}) runs {} as {}", id.short_hex(), job->process->pid(), start.argv[0],
      start.user ? start.user->name : "the node's user");
  return job->process->pid();
}

void JobRunner::on_output(const std::shared_ptr<Job>& job, bool is_stderr, std::string_view bytes) {
  job->log.append(bytes);
  job->tail.append(bytes);
  if (!job->submitter || job->submitter->closed()) return;
  const bool is_full = job->submitter->queued_bytes() > options_.queued_bytes_max;
  if (is_full && !job->stop_reason.empty())
    return;  // no client takes it, and it is to end; the log has it
  send_event(*job->submitter, control::JobOutput{job->id, is_stderr, std::string(bytes)});
  if (job->stop_reason.empty() && job->submitter->queued_bytes() > options_.queued_bytes_max) {
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
  JobOutcome outcome = cause.exit_code == 0 ? JobOutcome::kSucceeded : JobOutcome::kFailed;
  if (!job->stop_reason.empty()) {
    outcome = JobOutcome::kStopped;
    cause.text = job->stop_reason + " (" + cause.text + ")";
  }
  if (outcome != JobOutcome::kSucceeded) cause.output_tail = tail_of(job->tail);
  LOG(info, "job {} {}", id.short_hex(), cause.text);
  if (job->submitter && !job->submitter->closed())
    send_event(*job->submitter, control::JobExited{id, cause});
  on_end_(id, outcome, cause);
  if (jobs_.empty() && on_empty_) std::exchange(on_empty_, nullptr)();
}

std::vector<JobId> JobRunner::running() const {
  std::vector<JobId> running;
  for (const auto& [id, job] : jobs_) running.push_back(id);
  return running;
}

Status JobRunner::cancel(JobId id, const std::string& reason) {
  auto found = jobs_.find(id);
  if (found == jobs_.end())
    return not_found("no submitted job " + id.short_hex() + " runs on this node");
  Job& job = *found->second;
  job.process->end(job.stop_reason.empty() ? options_.cancel_grace : std::chrono::milliseconds(0));
  if (job.stop_reason.empty()) job.stop_reason = reason;
  job.process->pause_output(false);  // should no client take it
  return {};
}

void JobRunner::on_submitter_closed(const Channel& channel) {
  for (const auto& [id, job] : jobs_) {
    if (job->submitter.get() != &channel) continue;
    LOG(info, "job {}: its submitter is gone", id.short_hex());
    Status cancelled = cancel(id, "its submitter is gone");
    if (!cancelled.ok()) LOG(warn, "{}", cancelled.message());
  }
}

void JobRunner::end_all(std::function<void()> done) {
  if (jobs_.empty()) return done();
  on_empty_ = std::move(done);
  for (const auto& [id, job] : jobs_) {
    if (job->stop_reason.empty()) job->stop_reason = "its node was stopped";
    job->process->end(options_.cancel_grace);
  }
}

}  // namespace runtime
