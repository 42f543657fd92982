#include "runtime/node/cli_submit.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "runtime/node/cli_query.h"

namespace runtime {

namespace {

constexpr auto kTimeout = std::chrono::seconds(15);

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return;  // whoever read our output is gone; the job's end still counts
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

/// One submitted job as this command sees it. Its callbacks run on the loop, which this thread drives.
struct Submission {
  explicit Submission(EventLoop& loop) : over(loop), signals(loop.context(), SIGINT, SIGTERM) {}

  Event over;
  asio::signal_set signals;
  std::optional<DeathCause> end;
  Status lost;  // why the connection ended before the job did
  JobId job;
  int interrupted = 0;

  void watch_signals(NodeClient& client) {
    signals.async_wait([this, &client](boost::system::error_code ec, int number) {
      if (ec) return;
      interrupted = number;
      std::fprintf(stderr, "\nending the job (again to kill it)\n");
      client.cancel_job(job, deadline_after(kTimeout), [](Status) {});
      watch_signals(client);
    });
  }

  int exit_code() const {
    if (!end) return fail(lost);
    if (interrupted != 0) return 128 + interrupted;
    if (end->signal != 0) {
      std::fprintf(stderr, "error: the command was %s\n", end->text.c_str());
      return 128 + end->signal;
    }
    return end->exit_code;
  }
};

}  // namespace

int submit_command(const SubmitOptions& options) {
  if (options.command.empty()) return fail(invalid_argument("no command to run: starling submit -- ./driver arguments"));
  ::signal(SIGPIPE, SIG_IGN);
  auto cluster = find_cluster(options.address);
  if (!cluster.ok()) return fail(cluster.status());
  NodeClient::SubmitRequest request;
  request.argv = options.command;
  std::error_code error;
  request.working_dir = options.working_dir.empty() ? std::filesystem::current_path(error).string()
                                                    : std::filesystem::absolute(options.working_dir, error).string();
  if (error) return fail(invalid_argument("the working folder: " + error.message()));
  for (const std::string& line : options.env) {
    std::size_t equals = line.find('=');
    if (equals == std::string::npos || equals == 0) return fail(invalid_argument("--env is not KEY=VALUE: " + line));
    request.env[line.substr(0, equals)] = line.substr(equals + 1);
  }

  EventLoop loop;
  auto client = NodeClient::connect(loop, *cluster, Role::kTool, deadline_after(kTimeout));
  if (!client.ok()) return fail(client.status());
  auto submission = std::make_shared<Submission>(loop);
  (*client)->set_on_shutdown([submission](Status reason) {
    if (submission->end) return;
    submission->lost = reason.with_context("the job's node");
    submission->over.set();
  });
  NodeClient::SubmitHandlers handlers;
  handlers.on_output = [](bool is_stderr, std::string bytes) { write_all(is_stderr ? 2 : 1, bytes); };
  handlers.on_end = [submission](DeathCause cause) {
    submission->end = std::move(cause);
    submission->over.set();
  };
  Deadline deadline = deadline_after(kTimeout);
  auto job = wait_for<JobId>(loop, deadline, [&](auto done) {
    (*client)->submit(std::move(request), std::move(handlers), deadline, done);
  });
  if (!job.ok()) return fail(job.status());
  submission->job = *job;
  submission->watch_signals(**client);
  loop.run_until(submission->over, Deadline::max());
  int code = submission->exit_code();
  loop.stop();
  client->reset();
  return code;
}

}  // namespace runtime
