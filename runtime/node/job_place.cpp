#include "runtime/node/job_place.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>

#include "runtime/control/control.h"
#include "runtime/core/duration.h"
#include "runtime/node/blocking.h"
#include "runtime/node/machine.h"

namespace runtime {

namespace {

constexpr auto kAsk = std::chrono::seconds(15);
constexpr auto kPoll = std::chrono::seconds(1);
// Between a node's joining and its being found by who looks for it on its machine.
constexpr auto kAppears = std::chrono::milliseconds(2000);
constexpr auto kLookAgain = std::chrono::milliseconds(20);

struct Waiting {
  explicit Waiting(EventLoop& loop) : answered(loop) {}
  Event answered;
  std::optional<Result<GroupState>> place;
};

}  // namespace

Result<JobPlace> wait_for_place(EventLoop& loop, NodeClient& client, const SubmitOptions& options) {
  control::QueueJob request;
  request.job = JobId::random();
  request.place = GroupId::random();
  request.argv = options.command;
  if (Status status = add_resources(options.amounts, request.resources); !status.ok()) return status;
  if (request.resources.empty()) return invalid_argument("--label and --place-timeout are for a job that takes something: say how much, like --num-cpus 1");
  auto labels = parse_labels("--label", options.labels);
  if (!labels.ok()) return labels.status();
  request.labels = *std::move(labels);
  Deadline deadline = Deadline::max();
  if (!options.place_timeout.empty()) {
    auto patience = parse_duration(options.place_timeout);
    if (!patience.ok()) return patience.status().with_context("--place-timeout");
    deadline = deadline_after(*patience);
  }

  JobPlace place;
  place.job = request.job;
  place.group = request.place;
  auto waiting = std::make_shared<Waiting>(loop);
  client.queue_job(std::move(request), deadline, [waiting](Result<GroupState> group) {
    waiting->place.emplace(std::move(group));
    waiting->answered.set();
  });
  for (std::string said; !loop.run_until(waiting->answered, deadline_after(kPoll));) {
    auto group = wait_for<GroupState>(loop, deadline_after(kAsk), [&](auto done) {
      client.query_placement_group(place.group, "", "", false, deadline_after(kAsk), done);
    });
    if (!group.ok() || group->placed || group->pending_reason.empty() || group->pending_reason == said) continue;
    said = group->pending_reason;
    std::fprintf(stderr, "job %s waits (Ctrl-C: it is given up): %s\n", place.job.short_hex().c_str(), said.c_str());
  }
  if (!waiting->place->ok()) return waiting->place->status();
  place.node = (*waiting->place)->nodes.at(0);
  auto state = wait_for<ClusterState>(loop, deadline_after(kAsk), [&](auto done) { client.cluster_state(deadline_after(kAsk), done); });
  if (!state.ok()) return state.status();
  const auto node = std::find_if(state->nodes.begin(), state->nodes.end(), [&](const NodeInfo& info) { return info.node == place.node; });
  if (node == state->nodes.end()) return unavailable("node " + place.node.short_hex() + ", where the job was to run, has gone; submit it again");
  place.address = node->address;
  place.is_here = node->hostname == machine_hostname();
  return place;
}

ClusterAddress address_of(const JobPlace& place, const ClusterAddress& asked) {
  const Deadline patience = deadline_after(place.is_here ? kAppears : std::chrono::milliseconds(0));
  do {
    if (auto here = find_cluster(place.address); here.ok() && here->address == place.address && !here->unix_path.empty()) return *here;
    if (place.is_here) std::this_thread::sleep_for(kLookAgain);
  } while (steady_now() < patience);
  ClusterAddress there;
  there.address = place.address;
  there.token = asked.token;
  there.cluster = asked.cluster;
  return there;
}

}  // namespace runtime
