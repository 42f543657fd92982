#include "placement/app/cli_submit.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <optional>

#include "placement/app/cli_query.h"
#include "placement/app/job_place.h"
#include "runtime/control/job_client.h"
#include "runtime/core/printable_pieces.h"
#include "runtime/core/printable_text.h"
#include "runtime/job/job_shipping.h"

namespace placement {

namespace {

constexpr auto kSubmitTimeout = std::chrono::seconds(15);
constexpr auto kUnpackTimeout = std::chrono::minutes(10);

void write_output(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return;  // the reader of our output is gone; the job's end still counts
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

/// One submitted job as this command sees it. Its callbacks run on the loop, which this thread
/// drives.
struct Submission {
  explicit Submission(runtime::EventLoop& loop)
      : over(loop), signals(loop.context(), SIGINT, SIGTERM) {}

  runtime::Event over;
  runtime::asio::signal_set signals;
  runtime::PrintablePieces out{STDOUT_FILENO}, err{STDERR_FILENO};  // what the job writes
  std::optional<runtime::DeathCause> end;
  runtime::Status lost;  // why the connection ended before the job did
  runtime::JobId job;
  int interrupted = 0;

  void show(bool is_stderr, std::string_view bytes) {
    write_output(is_stderr ? STDERR_FILENO : STDOUT_FILENO, (is_stderr ? err : out).add(bytes));
  }

  /// The rest of it.
  void finish_output() {
    write_output(STDOUT_FILENO, out.finish());
    write_output(STDERR_FILENO, err.finish());
  }

  void watch_signals(runtime::NodeClient& client) {
    signals.async_wait([this, &client](boost::system::error_code ec, int number) {
      if (ec) return;
      interrupted = number;
      std::fprintf(stderr, "\nending the job (again to kill it)\n");
      runtime::JobClient(client).cancel(job, runtime::deadline_after(kSubmitTimeout),
                                        [](runtime::Status) {});
      watch_signals(client);
    });
  }

  int exit_code() const {
    if (!end) return fail(lost);
    if (interrupted != 0) return 128 + interrupted;
    if (end->exit_code == 0) return 0;
    // Its output has come here as it was written.
    std::fprintf(stderr, "error: job %s failed: %s (starling job logs %s)\n",
                 job.short_hex().c_str(), runtime::printable_text(end->text).c_str(),
                 job.short_hex().c_str());
    return end->signal != 0 ? 128 + end->signal : end->exit_code;
  }
};

/// One attempt to have the job begin at a node.
struct Start {
  runtime::Status status;
  bool may_have_begun = false;  // unknown, when a connection ends before an answer came
  std::shared_ptr<Submission> submission;
  runtime::NodeClient* client = nullptr;
  std::unique_ptr<runtime::NodeClient>
      elsewhere;  // `client`, where it is another node than the one asked
};

Start begin(runtime::EventLoop& loop, runtime::NodeClient& asked,
            const runtime::ClusterAddress& asked_at, const SubmitOptions& options,
            const std::optional<JobPlace>& place, runtime::JobRequest request) {
  Start start;
  start.client = &asked;
  runtime::ClusterAddress at = asked_at;
  if (place && place->node != asked.node_id()) {
    at = address_of(*place, asked_at);
    at.token = asked.token();  // it may have been changed while the job waited
    auto there = runtime::NodeClient::connect(loop, at, runtime::Role::kTool,
                                              runtime::deadline_after(kSubmitTimeout));
    if (!there.ok()) {
      start.status = there.status().with_context("node " + place->node.short_hex() + " at " +
                                                 place->address + ", which has what the job takes");
      return start;
    }
    start.elsewhere = *std::move(there);
    start.client = start.elsewhere.get();
  }
  auto submission = std::make_shared<Submission>(loop);
  start.submission = submission;
  start.client->set_on_shutdown([submission](runtime::Status reason) {
    if (submission->end) return;
    submission->lost = reason.with_context("the job's node");
    submission->over.set();
  });
  start.status =
      runtime::ship_files(loop, *start.client, options.working_dir, !at.unix_path.empty(), request);
  if (!start.status.ok()) return start;
  runtime::NodeClient::JobHandlers handlers;
  handlers.on_output = [submission](bool is_stderr, std::string bytes) {
    submission->show(is_stderr, bytes);
  };
  handlers.on_end = [submission](runtime::DeathCause cause) {
    submission->end = std::move(cause);
    submission->over.set();
  };
  const runtime::Deadline deadline =
      runtime::deadline_after(request.files.empty() && request.program.path.empty()
                                  ? std::chrono::milliseconds(kSubmitTimeout)
                                  : kUnpackTimeout);
  auto job = wait_for<runtime::JobId>(loop, deadline, [&](auto done) {
    runtime::JobClient(*start.client)
        .submit(std::move(request), std::move(handlers), deadline, done);
  });
  start.status = job.status();
  start.may_have_begun = start.client->channel()->closed();
  if (job.ok()) submission->job = *job;
  return start;
}

}  // namespace

int submit_command(const SubmitOptions& options) {
  if (options.command.empty())
    return fail(
        runtime::invalid_argument("no command to run: starling submit -- ./driver arguments"));
  ::signal(SIGPIPE, SIG_IGN);
  auto cluster = runtime::find_cluster(options.address);
  if (!cluster.ok()) return fail(cluster.status());
  runtime::JobRequest request;
  request.argv = options.command;
  request.detached = options.detach;
  for (const std::string& line : options.env) {
    std::size_t equals = line.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(runtime::invalid_argument("--env is not KEY=VALUE: " + line));
    const std::string name = line.substr(0, equals);
    if (name == "STARLING_ADDRESS" || name == "STARLING_TOKEN")
      return fail(runtime::invalid_argument("--env " + name + ": the job gets the cluster's own"));
    request.env[name] = line.substr(equals + 1);
  }

  runtime::EventLoop loop;
  auto asked = runtime::NodeClient::connect(loop, *cluster, runtime::Role::kTool,
                                            runtime::deadline_after(kSubmitTimeout));
  if (!asked.ok()) return fail(asked.status());
  std::optional<JobPlace> place;
  if (options.takes_something()) {
    if (runtime::Status status =
            runtime::check_files(loop, **asked, options.working_dir, options.command[0]);
        !status.ok())
      return fail(status);
    auto found = wait_for_place(loop, **asked, options);
    if (!found.ok()) return fail(found.status());
    place = *std::move(found);
    request.job = place->job;
    request.place = place->group;
  }
  Start start;
  while (true) {
    start = begin(loop, **asked, *cluster, options, place, request);
    if (start.status.ok() || !place || start.may_have_begun ||
        start.status.code() != runtime::ErrorCode::kUnavailable)
      break;
    std::fprintf(stderr, "job %s has not started and waits for another node: %s\n",
                 place->job.short_hex().c_str(),
                 runtime::printable_text(start.status.message()).c_str());
    auto another = wait_for_another_place(loop, **asked, *place);
    if (!another.ok()) return fail(another.status());
    place = *std::move(another);
  }
  if (!start.status.ok()) return fail(start.status);
  const auto& submission = start.submission;
  const runtime::JobId job = submission->job;
  runtime::NodeClient* client = start.client;
  if (options.detach) {
    std::printf("%s\n", job.hex().c_str());
    return 0;
  }
  submission->watch_signals(*client);
  loop.run_until(submission->over, runtime::Deadline::max());
  submission->finish_output();
  int code = submission->exit_code();
  loop.stop();
  asked->reset();
  start.elsewhere.reset();
  return code;
}

}  // namespace placement
