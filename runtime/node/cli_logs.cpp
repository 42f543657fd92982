#include "runtime/node/cli_logs.h"

#include <cstdio>
#include <thread>
#include <vector>

#include "runtime/node/cli_query.h"

namespace runtime {

namespace {

constexpr auto kTimeout = std::chrono::seconds(10);
constexpr auto kFollowEvery = std::chrono::milliseconds(200);

/// A log file on some node.
struct Place {
  NodeId node;
  std::string file;
  std::string label;
};

std::vector<Place> find_logs(const ClusterState& state, const std::string& what) {
  std::vector<Place> places;
  for (const ActorState& actor : state.actors) {
    if (actor.actor.hex().starts_with(what) || actor.name == what) {
      places.push_back({actor.node, "worker-" + actor.worker.hex() + ".log", "actor " + actor.class_name + " " + actor.actor.short_hex()});
    }
  }
  for (const JobInfo& job : state.jobs) {
    if (job.job.hex().starts_with(what)) places.push_back({job.node, "job-" + job.job.hex() + ".log", "job " + job.job.short_hex()});
  }
  for (const NodeInfo& node : state.nodes) {
    if (node.node.hex().starts_with(what)) places.push_back({node.node, "", "node " + node.node.short_hex()});
  }
  return places;
}

Result<Place> choose(const ClusterState& state, const std::string& what) {
  std::vector<Place> places = find_logs(state, what);
  if (places.size() == 1) return places[0];
  if (places.empty()) return not_found("no actor, job or node is called '" + what + "'; see starling status");
  std::string text = "'" + what + "' may be";
  for (const Place& place : places) text += " " + place.label + ",";
  text.back() = ';';
  return invalid_argument(text + " give more digits");
}

}  // namespace

int logs_command(const std::string& address, const std::string& what, bool follow) {
  auto cluster = find_cluster(address);
  if (!cluster.ok()) return fail(cluster.status());
  EventLoop loop;
  auto client = NodeClient::connect(loop, *cluster, Role::kTool, deadline_after(kTimeout));
  if (!client.ok()) return fail(client.status());
  Place place{(*client)->node_id(), "", ""};
  if (!what.empty()) {
    Deadline deadline = deadline_after(kTimeout);
    auto state = wait_for<ClusterState>(loop, deadline, [&](auto done) { (*client)->cluster_state(deadline, done); });
    if (!state.ok()) return fail(state.status());
    auto chosen = choose(*state, what);
    if (!chosen.ok()) return fail(chosen.status());
    place = *chosen;
    if (place.node.is_none()) return fail(not_found(place.label + " has not been started, so that it has no log"));
    for (const NodeInfo& node : state->nodes) {
      if (node.node != place.node || node.node == (*client)->node_id()) continue;
      ClusterAddress other = *cluster;
      other.address = node.address;
      other.unix_path.clear();
      client = NodeClient::connect(loop, other, Role::kTool, deadline_after(kTimeout));
      if (!client.ok()) return fail(client.status().with_context("node " + node.node.short_hex()));
    }
    if ((*client)->node_id() != place.node) return fail(unavailable("the node of " + place.label + " is gone, and its logs with it"));
  }
  std::uint64_t offset = 0;
  while (true) {
    Deadline deadline = deadline_after(kTimeout);
    auto chunk = wait_for<NodeClient::LogChunk>(loop, deadline, [&](auto done) { (*client)->read_log(place.file, offset, deadline, done); });
    if (!chunk.ok()) return fail(chunk.status());
    offset = chunk->next_offset;
    std::fwrite(chunk->text.data(), 1, chunk->text.size(), stdout);
    if (!chunk->text.empty()) continue;
    std::fflush(stdout);
    if (!follow) return 0;
    std::this_thread::sleep_for(kFollowEvery);
  }
}

}  // namespace runtime
