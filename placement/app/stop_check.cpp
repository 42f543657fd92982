#include "placement/app/stop_check.h"

#include <cstdio>
#include <thread>
#include <vector>

#include "runtime/control/cluster_client.h"
#include "runtime/control/node_client.h"
#include "runtime/core/printable_text.h"
#include "runtime/core/time_text.h"
#include "runtime/transport/blocking.h"

namespace placement {

namespace {

constexpr auto kJobsAskTimeout = std::chrono::seconds(3);
// A program that has just ended is in the list until the head was told.
constexpr auto kJustEnding = std::chrono::seconds(1);
constexpr auto kJobsPoll = std::chrono::milliseconds(50);

runtime::Result<std::vector<runtime::JobInfo>> jobs_that_run(runtime::EventLoop& loop,
                                                             runtime::NodeClient& client,
                                                             runtime::NodeId node) {
  const runtime::Deadline deadline = runtime::deadline_after(kJobsAskTimeout);
  const auto state = wait_for<runtime::ClusterState>(
      loop, deadline, [&](auto done) { runtime::ClusterClient(client).state(deadline, done); });
  if (!state.ok()) return state.status();
  std::vector<runtime::JobInfo> running;
  for (const runtime::JobInfo& job : state->jobs) {
    if (job.running && (node.is_none() || job.node == node)) running.push_back(job);
  }
  return running;
}

std::string job_line(const runtime::JobInfo& job) {
  return job.job.short_hex() + "  " + runtime::printable_text(job.command, /*one_line=*/true) +
         (job.pid == 0 ? "  (has not begun)"
                       : "  (pid " + std::to_string(job.pid) + ", since " +
                             runtime::time_text(job.started_ms) + ")");
}

void say_that_jobs_run(const std::vector<runtime::JobInfo>& jobs,
                       const runtime::ClusterAddress& address, bool force) {
  const bool is_one = jobs.size() == 1;
  if (!force) {
    std::fprintf(stderr,
                 "error: %s at %s, and would be ended: stop %s (starling job stop ID) or wait for "
                 "%s; starling stop --force ends all\n",
                 is_one ? "a job runs" : (std::to_string(jobs.size()) + " jobs run").c_str(),
                 address.address.c_str(), is_one ? "it" : "them", is_one ? "it" : "them");
  }
  for (const runtime::JobInfo& job : jobs)
    std::fprintf(force ? stdout : stderr, "%s %s\n", force ? "ending job" : "  job",
                 job_line(job).c_str());
  std::fflush(stdout);
}

}  // namespace

runtime::Result<bool> may_end_jobs(runtime::EventLoop& loop, const runtime::ClusterAddress& address,
                                   runtime::NodeId node, bool force) {
  auto client = runtime::NodeClient::connect(loop, address, runtime::Role::kTool,
                                             runtime::deadline_after(kJobsAskTimeout));
  if (!client.ok()) return client.status();
  auto jobs = jobs_that_run(loop, **client, node);
  for (const runtime::Deadline patience = runtime::deadline_after(kJustEnding);
       !force && jobs.ok() && !jobs->empty() && runtime::steady_now() < patience;
       jobs = jobs_that_run(loop, **client, node))
    std::this_thread::sleep_for(kJobsPoll);
  if (jobs.ok()) {
    if (!jobs->empty()) say_that_jobs_run(*jobs, address, force);
    return force || jobs->empty();
  }
  if (!force)
    std::fprintf(stderr,
                 "error: whether jobs run at %s could not be found out: %s; try again, or starling "
                 "stop --force ends all\n",
                 address.address.c_str(), runtime::printable_text(jobs.status().message()).c_str());
  return force;
}

}  // namespace placement
