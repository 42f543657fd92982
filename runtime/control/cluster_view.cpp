#include "runtime/control/cluster_view.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "runtime/control/cluster_client.h"
#include "runtime/control/node_client.h"
#include "runtime/core/environment.h"
#include "runtime/process/machine.h"
#include "runtime/process/session.h"
#include "runtime/transport/blocking.h"

namespace runtime {

namespace {

constexpr auto kViewTimeout = std::chrono::seconds(10);

NodeInfo this_machine() {
  NodeInfo node;
  node.hostname = machine_hostname();
  node.is_head = true;
  node.resources = machine_resources();
  node.labels = {{kPrivateLabel, "true"}};
  return node;
}

/// Seconds since 1970 at which the machine started; 0: unknown.
std::uint64_t boot_seconds() {
  std::ifstream stat("/proc/stat");
  std::string word;
  std::uint64_t value = 0;
  while (stat >> word) {
    if (word == "btime" && stat >> value) return value;
  }
  return 0;
}

std::uint64_t begun_ms(const SessionInfo& session) {
  static const auto ticks = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const std::uint64_t boot = boot_seconds();
  const bool is_here = session.pid_scope == pid_scope();  // else its clock began elsewhere
  return boot == 0 || !is_here ? 0 : boot * 1000 + session.pid_start * 1000 / ticks;
}

}  // namespace

bool wants_private_cluster(const std::string& explicit_address) {
  const char* variable = environment_variable("STARLING_ADDRESS");
  return explicit_address.empty() ? variable && std::string(variable) == kPrivateCluster
                                  : explicit_address == kPrivateCluster;
}

Result<ClusterView> view_cluster(const std::string& explicit_address) {
  ClusterView view;
  const bool is_named =
      !explicit_address.empty() || environment_variable("STARLING_ADDRESS") != nullptr;
  const bool is_private = wants_private_cluster(explicit_address);
  auto found = is_private ? Result<ClusterAddress>(not_found("")) : find_cluster(explicit_address);
  if (!found.ok() && found.status().code() == ErrorCode::kNotFound && (is_private || !is_named)) {
    view.is_private = true;
    view.nodes = {this_machine()};
    return view;
  }
  if (!found.ok()) return found.status();
  EventLoop loop;
  const Deadline deadline = deadline_after(kViewTimeout);
  auto client = NodeClient::connect(loop, *found, Role::kTool, deadline);
  if (!client.ok()) return client.status();
  auto state = wait_for<ClusterState>(
      loop, deadline, [&](auto done) { ClusterClient(**client).state(deadline, done); });
  if (!state.ok()) return state.status();
  view.cluster = state->cluster;
  view.address = found->address;
  for (NodeInfo& node : state->nodes) {
    if (node.alive) view.nodes.push_back(std::move(node));
  }
  for (const SessionInfo& session : running_sessions()) {
    const std::uint64_t begun = session.cluster == view.cluster ? begun_ms(session) : 0;
    if (begun != 0) view.since_ms = view.since_ms == 0 ? begun : std::min(view.since_ms, begun);
  }
  return view;
}

}  // namespace runtime
