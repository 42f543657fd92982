#include "placement/app/job_place.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>

#include "placement/app/cli_text.h"
#include "runtime/control/cluster_client.h"
#include "runtime/control/control.h"
#include "runtime/control/group_client.h"
#include "runtime/control/job_client.h"
#include "runtime/core/duration.h"
#include "runtime/core/printable_text.h"
#include "runtime/process/machine.h"
#include "runtime/transport/blocking.h"

namespace placement {

namespace {

constexpr auto kAsk = std::chrono::seconds(15);
constexpr auto kPlacePoll = std::chrono::seconds(1);
// Between a node's joining and its being found by who looks for it on its machine.
constexpr auto kAppears = std::chrono::milliseconds(2000);
constexpr auto kLookAgain = std::chrono::milliseconds(20);
// A node that died is known to be dead within ten seconds.
constexpr auto kComesBack = std::chrono::seconds(15);
constexpr auto kPollAnother = std::chrono::milliseconds(200);

struct Waiting {
  explicit Waiting(runtime::EventLoop& loop) : answered(loop) {}
  runtime::Event answered;
  std::optional<runtime::Result<runtime::GroupState>> place;
};

runtime::Result<runtime::GroupState> ask_for(runtime::EventLoop& loop, runtime::NodeClient& client,
                                             runtime::GroupId group) {
  return wait_for<runtime::GroupState>(loop, runtime::deadline_after(kAsk), [&](auto done) {
    runtime::GroupClient(client).query(group, "", "", false, runtime::deadline_after(kAsk), done);
  });
}

/// Says what a job waits for, when that has changed.
void say_waits(const JobPlace& place, const runtime::Result<runtime::GroupState>& group,
               std::string& said) {
  if (!group.ok() || group->placed || group->pending_reason.empty() ||
      group->pending_reason == said)
    return;
  said = group->pending_reason;
  std::fprintf(stderr, "job %s waits (Ctrl-C cancels it): %s\n", place.job.short_hex().c_str(),
               runtime::printable_text(said).c_str());
}

/// Where that node is.
runtime::Status locate(runtime::EventLoop& loop, runtime::NodeClient& client, runtime::NodeId at,
                       JobPlace& place) {
  place.node = at;
  auto state = wait_for<runtime::ClusterState>(loop, runtime::deadline_after(kAsk), [&](auto done) {
    runtime::ClusterClient(client).state(runtime::deadline_after(kAsk), done);
  });
  if (!state.ok()) return state.status();
  const auto node = std::find_if(state->nodes.begin(), state->nodes.end(),
                                 [&](const runtime::NodeInfo& info) { return info.node == at; });
  if (node == state->nodes.end())
    return runtime::unavailable("node " + at.short_hex() + ", where the job was to run, has gone");
  place.address = node->address;
  place.is_here = node->hostname == runtime::machine_hostname();
  return {};
}

}  // namespace

runtime::Result<JobPlace> wait_for_another_place(runtime::EventLoop& loop,
                                                 runtime::NodeClient& client,
                                                 const JobPlace& place) {
  const runtime::Deadline comes_back = runtime::deadline_after(kComesBack);
  JobPlace next = place;
  std::string said;
  while (true) {
    const auto group = ask_for(loop, client, place.group);
    if (!group.ok())
      return group.status().with_context("job " + place.job.short_hex() + " lost its place");
    if (group->placed && (group->nodes.at(0) != place.node || runtime::steady_now() > comes_back)) {
      runtime::Status found = locate(loop, client, group->nodes.at(0), next);
      if (found.ok()) return next;
      if (client.channel()->closed()) return found;
    }
    say_waits(place, group, said);
    std::this_thread::sleep_for(kPollAnother);
  }
}

runtime::Result<JobPlace> wait_for_place(runtime::EventLoop& loop, runtime::NodeClient& client,
                                         const SubmitOptions& options) {
  runtime::control::QueueJob request;
  request.job = runtime::JobId::random();
  request.place = runtime::GroupId::random();
  request.argv = options.command;
  if (runtime::Status status = add_resources(options.amounts, request.resources); !status.ok())
    return status;
  if (request.resources.empty())
    return runtime::invalid_argument(
        "--label and --place-timeout are for a job that takes something: say how much, like "
        "--num-cpus 1");
  auto labels = parse_labels("--label", options.labels);
  if (!labels.ok()) return labels.status();
  request.labels = *std::move(labels);
  runtime::Deadline deadline = runtime::Deadline::max();
  if (!options.place_timeout.empty()) {
    auto patience = runtime::parse_duration(options.place_timeout);
    if (!patience.ok()) return patience.status().with_context("--place-timeout");
    if (patience->count() <= 0)
      return runtime::invalid_argument("--place-timeout: a time above zero is needed, like 10m");
    deadline = runtime::deadline_after(*patience);
  }

  JobPlace place;
  place.job = request.job;
  place.group = request.place;
  auto waiting = std::make_shared<Waiting>(loop);
  runtime::JobClient(client).queue(std::move(request), deadline,
                                   [waiting](runtime::Result<runtime::GroupState> group) {
                                     waiting->place.emplace(std::move(group));
                                     waiting->answered.set();
                                   });
  for (std::string said; !loop.run_until(waiting->answered, runtime::deadline_after(kPlacePoll));)
    say_waits(place, ask_for(loop, client, place.group), said);
  if (!waiting->place->ok()) return waiting->place->status();
  const runtime::NodeId node = (*waiting->place)->nodes.at(0);
  runtime::Status found = locate(loop, client, node, place);
  if (!found.ok() && client.channel()->closed()) return found;
  if (!found.ok()) return wait_for_another_place(loop, client, place);
  return place;
}

runtime::ClusterAddress address_of(const JobPlace& place, const runtime::ClusterAddress& asked) {
  const runtime::Deadline patience =
      runtime::deadline_after(place.is_here ? kAppears : std::chrono::milliseconds(0));
  do {
    if (auto here = runtime::find_cluster(place.address);
        here.ok() && here->address == place.address && !here->unix_path.empty())
      return *here;
    if (place.is_here) std::this_thread::sleep_for(kLookAgain);
  } while (runtime::steady_now() < patience);
  runtime::ClusterAddress there;
  there.address = place.address;
  there.token = asked.token;
  there.cluster = asked.cluster;
  return there;
}

}  // namespace placement
