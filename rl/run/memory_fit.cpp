#include "rl/run/memory_fit.h"

#include <algorithm>
#include <functional>

#include "rl/config/number_text.h"

namespace rl {
namespace {

constexpr std::size_t kNodesShown = 8;

// What the processes of a node take.
struct NodeNeed {
  std::int64_t always = 0;
  std::int64_t passes = 0;  // of the role that takes most, while it is at work

  void add(const RoleMemory& role, std::int64_t workers) {
    const std::int64_t of_passes = workers * bytes_in_calls(role.parts);
    always += workers * role.total() - of_passes;
    for (const MemoryPart& part : role.parts)
      always -= part.name == kCheckpointPart ? workers * part.bytes : 0;
    if (role.concurrent)
      always += of_passes;
    else
      passes = std::max(passes, of_passes);
  }
  std::int64_t total() const { return always + passes; }
};

// Of a role's workers one writes checkpoints: the leader, wherever it is.
std::int64_t checkpoint_copies(std::span<const RoleMemory> roles) {
  std::int64_t bytes = 0;
  for (const RoleMemory& role : roles) {
    for (const MemoryPart& part : role.parts)
      bytes += part.name == kCheckpointPart ? part.bytes : 0;
  }
  return bytes;
}

// Of each node that the run needs, largest first. Roles take turns, but for those that generate a
// step ahead, which have their own nodes where there are enough of them.
std::vector<std::int64_t> needs_of_nodes(std::span<const RoleMemory> roles,
                                         const SlotOptions& slots, std::size_t nodes_there) {
  const SlotMemory here = slot_memory(roles, slots);
  const SlotMemory ahead = ahead_memory(roles, slots);
  std::vector<std::int64_t> needs(static_cast<std::size_t>(slots.nodes), here.node_bytes);
  needs.front() += here.leader_bytes;
  const bool apart = nodes_there >= static_cast<std::size_t>(slots.nodes + slots.separate_nodes);
  for (std::int64_t i = 0; i < slots.separate_nodes; ++i) {
    if (apart || i >= slots.nodes)
      needs.push_back(ahead.node_bytes);
    else
      needs[static_cast<std::size_t>(i)] += ahead.node_bytes;
  }
  std::sort(needs.begin(), needs.end(), std::greater<>());
  return needs;
}

std::string figures(std::span<const RoleMemory> roles) {
  std::string text;
  for (const RoleMemory& role : roles)
    text += (text.empty() ? "" : ", ") + role.role + " x " + std::to_string(role.workers) + " of " +
            bytes_text(role.total()) + " each";
  return text;
}

}  // namespace

std::int64_t memory_of_all(std::span<const RoleMemory> roles) {
  std::int64_t bytes = checkpoint_copies(roles);
  for (const RoleMemory& role : roles) {
    const RoleMemory one[] = {role};
    bytes += role.workers * (role.total() - checkpoint_copies(one));
  }
  return bytes;
}

SlotMemory slot_memory(std::span<const RoleMemory> roles, const SlotOptions& slots) {
  NodeNeed need;
  for (const RoleMemory& role : roles) {
    if (!role.devices_of_its_own) need.add(role, slots.per_node);
  }
  return {.node_bytes = need.total(), .leader_bytes = checkpoint_copies(roles)};
}

SlotMemory ahead_memory(std::span<const RoleMemory> roles, const SlotOptions& slots) {
  NodeNeed need;
  for (const RoleMemory& role : roles) {
    if (role.devices_of_its_own) need.add(role, slots.separate_per_node);
  }
  return {.node_bytes = need.total(), .leader_bytes = 0};
}

SlotMemory bounded_memory(const SlotMemory& memory, const SlotOptions& slots,
                          std::span<const NodeRoom> nodes) {
  std::vector<double> rooms;
  for (const NodeRoom& node : nodes) rooms.push_back(node.memory_bytes);
  std::sort(rooms.begin(), rooms.end(), std::greater<>());
  if (rooms.size() < static_cast<std::size_t>(slots.nodes)) return memory;
  const auto least = static_cast<std::int64_t>(rooms[static_cast<std::size_t>(slots.nodes) - 1]);
  const std::int64_t each = std::min(memory.node_bytes, least);
  const auto most = static_cast<std::int64_t>(rooms.front());
  return {.node_bytes = each, .leader_bytes = std::min(memory.leader_bytes, most - each)};
}

runtime::Status check_memory_fits(std::span<const RoleMemory> roles, const SlotOptions& slots,
                                  std::span<const NodeRoom> nodes) {
  std::vector<double> rooms;
  for (const NodeRoom& node : nodes) {
    if (node.memory_bytes <= 0) return {};  // it does not say
    rooms.push_back(node.memory_bytes);
  }
  std::sort(rooms.begin(), rooms.end(), std::greater<>());
  const std::vector<std::int64_t> needs = needs_of_nodes(roles, slots, rooms.size());
  if (rooms.size() < needs.size()) return {};
  // With a GPU for each worker the workers of a run need not be spread evenly: only the sum is
  // known.
  const bool spread = !slots.device.starts_with("cuda");
  std::size_t misfit = needs.size();
  std::int64_t all = 0;
  double all_rooms = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    all += needs[i];
    if (spread && misfit == needs.size() && static_cast<double>(needs[i]) > rooms[i]) misfit = i;
  }
  for (const double room : rooms) all_rooms += room;
  if (!spread && static_cast<double>(all) > all_rooms) misfit = 0;
  if (misfit == needs.size()) return {};

  std::string text = "the processes of this run do not fit the nodes' memory: " + figures(roles) +
                     "; together " + bytes_text(all);
  if (needs.size() > 1) text += ", up to " + bytes_text(needs.front()) + " on a node";
  text += ". There are ";
  const std::size_t shown = std::min(nodes.size(), kNodesShown);
  for (std::size_t i = 0; i < shown; ++i)
    text += (i == 0 ? "" : ", ") + bytes_text(static_cast<std::int64_t>(nodes[i].memory_bytes)) +
            " on " + nodes[i].name;
  if (shown < nodes.size())
    text += " and what " + std::to_string(nodes.size() - shown) + " more have";
  std::int64_t fits = slots.per_node - 1;
  for (; fits > 0 && spread; --fits) {
    SlotOptions fewer = slots;
    fewer.per_node = fits;
    const std::vector<std::int64_t> less = needs_of_nodes(roles, fewer, rooms.size());
    bool all_fit = true;
    for (std::size_t i = 0; i < less.size() && all_fit; ++i)
      all_fit = static_cast<double>(less[i]) <= rooms[i];
    if (all_fit) break;
  }
  text += spread && fits > 0 ? ". With trainer.n_gpus_per_node=" + std::to_string(fits) +
                                   " workers of this size would fit;"
                             : ". Take fewer workers (trainer.n_gpus_per_node);";
  return runtime::resource_exhausted(
      text +
      " smaller micro-batches, shorter sequences and more nodes (trainer.nnodes) help, too. A node "
      "that has more than it says declares it: starling start --resources '{\"memory\": BYTES}'");
}

runtime::Status check_enough_nodes(const SlotOptions& slots, std::span<const NodeRoom> nodes) {
  if (nodes.empty() || static_cast<std::int64_t>(nodes.size()) >= slots.nodes) return {};
  return runtime::resource_exhausted(
      slots.nodes_key + "=" + std::to_string(slots.nodes) + ", but the cluster has " +
      std::to_string(nodes.size()) +
      " node(s) with CPUs: start more with `starling start --address ADDRESS`, or set " +
      slots.nodes_key);
}

std::optional<std::string> cpu_warning(const SlotOptions& slots, std::span<const NodeRoom> nodes) {
  std::vector<double> cpus;
  for (const NodeRoom& node : nodes) cpus.push_back(node.cpus);
  if (cpus.size() < static_cast<std::size_t>(slots.nodes) || cpus.empty()) return std::nullopt;
  std::sort(cpus.begin(), cpus.end(), std::greater<>());
  const bool shared = cpus.size() < static_cast<std::size_t>(slots.nodes + slots.separate_nodes);
  const std::int64_t workers = slots.per_node + (shared ? slots.separate_per_node : 0);
  const double fewest = cpus[static_cast<std::size_t>(slots.nodes) - 1];
  const double reserved = slots.cpus_per_worker * static_cast<double>(slots.per_node);
  const bool may_come = std::any_of(nodes.begin(), nodes.end(),
                                    [](const NodeRoom& node) { return !node.is_private; });
  if (reserved > fewest && may_come && !slots.device.starts_with("cuda"))
    return "trainer.cpus_per_worker: the " + std::to_string(slots.per_node) +
           " worker(s) of a node ask for " + number_text(reserved, 4) + " CPUs, and a node has " +
           number_text(fewest, 4) + ": they wait for one that has as many";
  if (static_cast<double>(workers) <= fewest) return std::nullopt;
  const char* keys = workers > slots.per_node ? "trainer.n_gpus_per_node, rollout.n_gpus_per_node: "
                                              : "trainer.n_gpus_per_node: ";
  return keys + std::to_string(workers) + " workers are more than the CPUs of a node (" +
         number_text(fewest, 4) + "): they take turns, and as many workers as CPUs would be faster";
}

}  // namespace rl
