// JobRunner: programs that users submitted to this node.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/process/job_user.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/keyring.h"

namespace runtime {

class LogRoom;

struct JobRunnerOptions {
  std::string node_address;  // HOST:PORT; becomes STARLING_ADDRESS
  std::string session_dir;
  Keyring token;            // of other users' jobs: STARLING_TOKEN is the submitters' of it
  std::string token_file;   // becomes STARLING_TOKEN_FILE, for jobs of the node's own user
  LogRoom* logs = nullptr;  // null: logs have their own bounds only
  std::size_t jobs_max = 256;
  std::size_t queued_bytes_max =
      4 << 20;  // output not yet taken by the submitter; then the job's pipe fills up
  std::chrono::milliseconds cancel_grace{5000};  // between SIGTERM and SIGKILL
};

/// What is to be run.
struct JobStart {
  JobId job;
  std::vector<std::string> argv;
  std::string program;  // the file that is argv[0]; empty: what argv[0] says
  std::string working_dir;
  Environment env;
  std::optional<JobUser> user;  // nothing: the node's
  std::shared_ptr<Channel>
      submitter;  // null: no process waits for its output, nor does it end with who submitted it
};

/// Lives on the event loop.
class JobRunner {
 public:
  /// How a job ended. Its cause has the tail of the output unless the job succeeded.
  using OnEnd = std::function<void(JobId, JobOutcome, const DeathCause&)>;

  /// `on_end` runs when a job's process has ended, after its submitter was told.
  JobRunner(EventLoop& loop, JobRunnerOptions options, OnEnd on_end);
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;
  ~JobRunner();

  /// Room for one more? kResourceExhausted: no.
  Status check_room() const;
  /// Starts the program. Its output and end go to the submitter as events; when that closes, the
  /// job is stopped. Errors: kNotFound, kInvalidArgument (no such program or folder),
  /// kResourceExhausted.
  Result<std::int32_t> start(const JobStart& start);

  /// SIGTERM to the program's process group, SIGKILL to what is left of it after a while; the
  /// second time SIGKILL at once. kNotFound: no such job.
  Status cancel(JobId job, const std::string& reason);
  void on_submitter_closed(const Channel& channel);
  bool runs(JobId job) const { return jobs_.contains(job); }
  std::vector<JobId> running() const;
  /// As cancel(), for all of them; `done` when the last has ended.
  void end_all(std::function<void()> done);

 private:
  struct Job;
  void on_output(const std::shared_ptr<Job>& job, bool is_stderr, std::string_view bytes);
  void on_exit(JobId id, DeathCause cause);
  void resume_later(const std::shared_ptr<Job>& job);

  EventLoop& loop_;
  const JobRunnerOptions options_;
  OnEnd on_end_;
  std::map<JobId, std::shared_ptr<Job>> jobs_;
  std::function<void()> on_empty_;
};

}  // namespace runtime
