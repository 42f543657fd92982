#include "rl/app/cluster_choice.h"

#include <cstdio>
#include <cstdlib>

#include "rl/plan/memory_plan.h"
#include "runtime/core/printable_text.h"
#include "runtime/core/time_text.h"

namespace rl {

using runtime::ClusterView;
using runtime::NodeInfo;
using runtime::Result;

namespace {

constexpr std::size_t kNodesListed = 20;

std::string node_text(const NodeInfo& node) {
  const auto amount = [&](const char* resource) {
    const auto found = node.resources.find(resource);
    return found == node.resources.end() ? 0.0 : found->second;
  };
  char text[64];
  std::snprintf(text, sizeof text, "%.4g CPUs, ", amount("CPU"));
  std::string line = text + bytes_text(static_cast<std::int64_t>(amount("memory")));
  if (amount("GPU") > 0) line += ", " + std::to_string(static_cast<int>(amount("GPU"))) + " GPUs";
  return line;
}

}  // namespace

Result<ClusterView> choose_cluster(const std::string& address, bool is_private) {
  if (!is_private) return runtime::view_cluster(address);
  ::setenv("STARLING_ADDRESS", runtime::kPrivateCluster, 1);
  return runtime::view_cluster(runtime::kPrivateCluster);
}

std::string cluster_text(const ClusterView& view) {
  if (view.is_private) {
    return "its own cluster, on this machine (" + node_text(view.nodes.front()) +
           "), for as long as the command runs";
  }
  // To the second.
  std::string since = runtime::time_text(view.since_ms);
  if (const std::size_t point = since.find('.'); point != since.npos) since.erase(point, 4);
  std::string text = "joins the cluster at " + view.address + " (" + view.cluster.short_hex() +
                     (since.empty() ? "" : ", since " + since) + ") of " +
                     std::to_string(view.nodes.size()) +
                     (view.nodes.size() == 1 ? " node:" : " nodes:");
  for (std::size_t i = 0; i < view.nodes.size(); ++i) {
    if (i == kNodesListed) {
      text += "\n  and " + std::to_string(view.nodes.size() - i) + " more";
      break;
    }
    const NodeInfo& node = view.nodes[i];
    text += "\n  node " + node.node.short_hex() + " at " + node.address + " on " +
            runtime::printable_text(node.hostname, /*one_line=*/true) + ": " + node_text(node);
    if (node.is_head) text += " (head)";
    if (node.drain) text += " (about to leave)";
  }
  return text + "\n  (--private: its own cluster; --address HOST:PORT: another)";
}

}  // namespace rl
