// JobRunner: programs that users submitted to this node, each with the connection that submitted it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

struct JobRunnerOptions {
  std::string node_address;  // HOST:PORT; becomes STARLING_ADDRESS
  std::string session_dir;
  std::string token_file;    // becomes STARLING_TOKEN_FILE
  std::size_t jobs_max = 256;
  std::size_t queued_bytes_max = 4 << 20;     // output not yet taken by the submitter; then the job's pipe fills up
  std::chrono::milliseconds cancel_grace{5000};  // between SIGTERM and SIGKILL
};

/// Lives on the event loop.
class JobRunner {
 public:
  /// `on_end` runs when a job's process has ended, after its submitter was told.
  JobRunner(EventLoop& loop, JobRunnerOptions options, std::function<void(JobId)> on_end);
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;
  ~JobRunner();

  /// Starts the program. Its output and end go to `submitter` as events; when that closes, the job is cancelled.
  /// Errors: kNotFound, kInvalidArgument (no such program or folder), kResourceExhausted.
  Result<std::int32_t> start(JobId job, const control::SubmitJob& request, std::shared_ptr<Channel> submitter);

  /// SIGTERM to the program's process group, SIGKILL after a while; the second time SIGKILL at once. kNotFound: no such job.
  Status cancel(JobId job);
  void on_submitter_closed(const Channel& channel);
  bool runs(JobId job) const { return jobs_.contains(job); }
  std::vector<JobId> running() const;
  void end_all(std::function<void()> done);

 private:
  struct Job;
  void on_output(const std::shared_ptr<Job>& job, bool is_stderr, std::string_view bytes);
  void on_exit(JobId id, DeathCause cause);
  void resume_later(const std::shared_ptr<Job>& job);

  EventLoop& loop_;
  const JobRunnerOptions options_;
  std::function<void(JobId)> on_end_;
  std::map<JobId, std::shared_ptr<Job>> jobs_;
  std::function<void()> on_empty_;
};

}  // namespace runtime
