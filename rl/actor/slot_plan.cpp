#include "rl/actor/slot_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>

#include "rl/config/number_text.h"
#include "rl/plan/memory_plan.h"
#include "runtime/control/cluster_view.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr std::size_t kRoomsShown = 8;
constexpr double kCpusMin = 0.01;  // of a worker
constexpr const char* kCpusKey = "trainer.cpus_per_worker";

std::string rooms_text(std::span<const NodeRoom> nodes) {
  std::string text = "there are ";
  const std::size_t shown = std::min(nodes.size(), kRoomsShown);
  for (std::size_t i = 0; i < shown; ++i)
    text += (i == 0 ? "" : ", ") + number_text(nodes[i].cpus, 4) + " CPUs with " +
            bytes_text(static_cast<std::int64_t>(nodes[i].memory_bytes)) + " on " + nodes[i].name;
  if (shown < nodes.size())
    text += " and what " + std::to_string(nodes.size() - shown) + " more have";
  return text;
}

std::string workers_key(const SlotOptions& options) {
  return options.nodes_key.starts_with("rollout.") ? "rollout.n_gpus_per_node"
                                                   : "trainer.n_gpus_per_node";
}

std::string or_fewer_workers(const SlotOptions& options) {
  return options.per_node > 1 ? ", or take fewer workers (" + workers_key(options) + ")" : "";
}

// Of a node, with those of the other role where there are too few nodes for both.
std::int64_t workers_of_node(const SlotOptions& options, std::size_t nodes) {
  const bool shared = static_cast<std::int64_t>(nodes) < options.nodes + options.separate_nodes;
  return options.per_node + (shared ? options.separate_per_node : 0);
}

// Of each bundle, largest first; zeros: it is not known what they take, or what a node has.
std::vector<double> memory_of_bundles(const SlotOptions& options, std::span<const NodeRoom> nodes) {
  std::vector<double> bytes(static_cast<std::size_t>(options.nodes), 0.0);
  const bool on_cpus = options.device.empty() || options.device == "cpu";
  const bool all_say = std::all_of(nodes.begin(), nodes.end(),
                                   [](const NodeRoom& node) { return node.memory_bytes > 0; });
  if (!on_cpus || !all_say || options.memory.node_bytes <= 0) return bytes;
  std::fill(bytes.begin(), bytes.end(), static_cast<double>(options.memory.node_bytes));
  bytes.front() += static_cast<double>(options.memory.leader_bytes);
  return bytes;
}

// Whether the nodes, which come with the most memory first, have for each of `memory`, largest
// first, a separate one with `cpus` CPUs.
bool nodes_hold(std::span<const NodeRoom> nodes, double cpus, std::span<const double> memory) {
  std::size_t held = 0;
  for (const NodeRoom& node : nodes) {
    if (held < memory.size() && node.cpus >= cpus && node.memory_bytes >= memory[held]) ++held;
  }
  return held == memory.size();
}

// The most CPUs that each of such nodes can have; nothing: none have the memory.
std::optional<double> most_cpus(std::span<const NodeRoom> nodes, std::span<const double> memory) {
  std::optional<double> most;
  for (const NodeRoom& node : nodes) {
    if ((!most || node.cpus > *most) && nodes_hold(nodes, node.cpus, memory)) most = node.cpus;
  }
  return most;
}

std::string so_many_nodes(std::int64_t nodes) {
  return nodes == 1 ? "no node has" : "fewer than " + std::to_string(nodes) + " nodes have";
}

Status check_memory(const SlotOptions& options, std::span<const NodeRoom> nodes,
                    std::span<const double> memory) {
  const std::string bytes = bytes_text(static_cast<std::int64_t>(memory.front()));
  const std::optional<double> most = most_cpus(nodes, memory);
  if (!most)
    return runtime::resource_exhausted(
        workers_key(options) + "=" + std::to_string(options.per_node) +
        ": the workers of a node take " + bytes + " of memory, and " +
        so_many_nodes(options.nodes) + " as much: " + rooms_text(nodes) +
        "; take fewer workers or smaller micro-batches");
  // What no node has of CPUs alone is waited for.
  const double cpus = options.cpus_per_worker * static_cast<double>(options.per_node);
  const std::vector<double> none(memory.size(), 0.0);
  if (nodes_hold(nodes, cpus, memory) || !nodes_hold(nodes, cpus, none)) return {};
  const double fits = std::floor(*most / static_cast<double>(options.per_node));
  return runtime::resource_exhausted(
      std::string(kCpusKey) + "=" + number_text(options.cpus_per_worker, 4) + ": the " +
      std::to_string(options.per_node) + " worker(s) of a node take " + number_text(cpus, 4) +
      " CPUs and " + bytes + " of memory, and " + so_many_nodes(options.nodes) +
      " both: " + rooms_text(nodes) + "; " +
      (fits >= 1 ? "set " + std::string(kCpusKey) + " to at most " + number_text(fits, 4)
                 : "leave " + std::string(kCpusKey) + " out") +
      or_fewer_workers(options));
}

// Waiting would be useless.
Status check_private_cpus(const SlotOptions& options, std::span<const NodeRoom> nodes) {
  double most = 0;
  for (const NodeRoom& node : nodes) {
    if (!node.is_private) return {};
    most = std::max(most, node.cpus);
  }
  const auto workers = static_cast<double>(workers_of_node(options, nodes.size()));
  if (options.cpus_per_worker * workers <= most) return {};
  const double fits = std::floor(most / workers);
  return runtime::resource_exhausted(
      std::string(kCpusKey) + "=" + number_text(options.cpus_per_worker, 4) + ": the " +
      number_text(workers, 4) + " worker(s) of a node ask for " +
      number_text(options.cpus_per_worker * workers, 4) +
      " CPUs, and the cluster of this run alone, which no node will join, has " +
      number_text(most, 4) + ": " +
      (fits >= 1 ? "set " + std::string(kCpusKey) + " to at most " + number_text(fits, 4)
                 : "leave " + std::string(kCpusKey) + " out, and workers share them") +
      or_fewer_workers(options));
}

// Of one worker, where nothing says it. All get the same, so the node with the fewest decides;
// those without a whole core share one. CPUs that another job holds now count, too.
Result<double> cpu_share(const SlotOptions& options, std::size_t nodes, double cpus_of_node) {
  const double share = cpus_of_node / static_cast<double>(workers_of_node(options, nodes));
  if (share < kCpusMin)
    return runtime::invalid_argument(
        workers_key(options) + "=" + std::to_string(options.per_node) +
        ": a node has too few CPUs for this number of workers (at least a hundredth of one each)");
  return share >= 1.0 ? std::floor(share) : std::floor(share * 100.0) / 100.0;
}

}  // namespace

std::vector<NodeRoom> node_rooms(std::span<const runtime::NodeInfo> nodes) {
  const auto amount = [](const runtime::NodeInfo& node, const char* resource) {
    const auto found = node.resources.find(resource);
    return found == node.resources.end() ? 0.0 : found->second;
  };
  std::vector<NodeRoom> rooms;
  for (const runtime::NodeInfo& node : nodes) {
    if (!node.alive || amount(node, "CPU") <= 0) continue;
    // A cluster that is still to be started has no ids.
    const std::string name = node.node.is_none()
                                 ? node.hostname
                                 : "node " + node.node.short_hex() + " at " + node.address;
    rooms.push_back({.name = name,
                     .memory_bytes = amount(node, "memory"),
                     .cpus = amount(node, "CPU"),
                     .is_private = node.labels.contains(runtime::kPrivateLabel)});
  }
  return rooms;
}

Result<SlotPlan> plan_slots(const SlotOptions& options, std::span<const NodeRoom> nodes) {
  if (static_cast<std::int64_t>(nodes.size()) < options.nodes)
    return runtime::resource_exhausted(
        options.nodes_key + "=" + std::to_string(options.nodes) + ", but the cluster has " +
        std::to_string(nodes.size()) +
        " node(s) with CPUs: start more with `starling start --address ADDRESS`, or set " +
        options.nodes_key);
  if (const Status own = check_private_cpus(options, nodes); !own.ok()) return own;
  std::vector<NodeRoom> rooms(nodes.begin(), nodes.end());
  std::stable_sort(rooms.begin(), rooms.end(), [](const NodeRoom& a, const NodeRoom& b) {
    return a.memory_bytes > b.memory_bytes;
  });
  const std::vector<double> memory = memory_of_bundles(options, rooms);
  if (const Status held = check_memory(options, rooms, memory); !held.ok()) return held;
  SlotPlan plan{.cpus = options.cpus_per_worker};
  if (plan.cpus == 0) {
    const Result<double> share = cpu_share(options, rooms.size(), *most_cpus(rooms, memory));
    if (!share.ok()) return share.status();
    plan.cpus = *share;
  }
  // With CUDA a bundle a slot.
  const bool has_gpus = options.device.starts_with("cuda");
  const bool spread = options.nodes > 1 && (!has_gpus || options.per_node == 1);
  if (spread) plan.strategy = runtime::GroupStrategy::kStrictSpread;
  if (has_gpus) {
    plan.bundles.assign(static_cast<std::size_t>(options.nodes * options.per_node),
                        {{"CPU", plan.cpus}, {"GPU", 1}});
    return plan;
  }
  for (const double bytes : memory) {
    runtime::ResourceMap& bundle = plan.bundles.emplace_back();
    bundle["CPU"] = plan.cpus * static_cast<double>(options.per_node);
    if (bytes > 0) bundle["memory"] = bytes;
  }
  return plan;
}

}  // namespace rl
