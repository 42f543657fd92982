#include "runtime/node/cli_submit.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <optional>

#include "runtime/node/cli_query.h"
#include "runtime/node/job_place.h"
#include "runtime/node/job_shipping.h"

namespace runtime {

namespace {

constexpr auto kTimeout = std::chrono::seconds(15);
constexpr auto kUnpackTimeout = std::chrono::minutes(10);

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
    if (end->exit_code == 0) return 0;
    // Its output has come here as it was written.
    std::fprintf(stderr, "error: job %s failed: %s (starling job logs %s)\n", job.short_hex().c_str(), end->text.c_str(), job.short_hex().c_str());
    return end->signal != 0 ? 128 + end->signal : end->exit_code;
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
  request.detached = options.detach;
  for (const std::string& line : options.env) {
    std::size_t equals = line.find('=');
    if (equals == std::string::npos || equals == 0) return fail(invalid_argument("--env is not KEY=VALUE: " + line));
    request.env[line.substr(0, equals)] = line.substr(equals + 1);
  }

  EventLoop loop;
  auto asked = NodeClient::connect(loop, *cluster, Role::kTool, deadline_after(kTimeout));
  if (!asked.ok()) return fail(asked.status());
  NodeClient* client = asked->get();
  std::unique_ptr<NodeClient> elsewhere;
  if (options.takes_something()) {
    auto place = wait_for_place(loop, *client, options);
    if (!place.ok()) return fail(place.status());
    request.job = place->job;
    request.place = place->group;
    if (place->node != client->node_id()) {
      cluster = address_of(*place, *cluster);
      auto there = NodeClient::connect(loop, *cluster, Role::kTool, deadline_after(kTimeout));
      if (!there.ok()) return fail(there.status().with_context("node " + place->node.short_hex() + " at " + place->address + ", which has what the job takes"));
      elsewhere = *std::move(there);
      client = elsewhere.get();
    }
  }
  auto submission = std::make_shared<Submission>(loop);
  client->set_on_shutdown([submission](Status reason) {
    if (submission->end) return;
    submission->lost = reason.with_context("the job's node");
    submission->over.set();
  });
  if (Status status = ship_files(loop, *client, options.working_dir, !cluster->unix_path.empty(), request); !status.ok()) return fail(status);
  NodeClient::SubmitHandlers handlers;
  handlers.on_output = [](bool is_stderr, std::string bytes) { write_all(is_stderr ? 2 : 1, bytes); };
  handlers.on_end = [submission](DeathCause cause) {
    submission->end = std::move(cause);
    submission->over.set();
  };
  Deadline deadline = deadline_after(request.files.empty() && request.program.path.empty() ? std::chrono::milliseconds(kTimeout) : kUnpackTimeout);
  auto job = wait_for<JobId>(loop, deadline, [&](auto done) {
    client->submit(std::move(request), std::move(handlers), deadline, done);
  });
  if (!job.ok()) return fail(job.status());
  submission->job = *job;
  if (options.detach) {
    std::printf("%s\n", job->hex().c_str());
    return 0;
  }
  submission->watch_signals(*client);
  loop.run_until(submission->over, Deadline::max());
  int code = submission->exit_code();
  loop.stop();
  asked->reset();
  elsewhere.reset();
  return code;
}

}  // namespace runtime
