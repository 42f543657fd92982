#include "rl/actor/worker_group.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

namespace rl {
namespace {

using runtime::Result;

constexpr const char* kAllocatorSettings = "PYTORCH_ALLOC_CONF";

double node_cpus(const runtime::NodeInfo& node) {
  const auto found = node.resources.find("CPU");
  return found == node.resources.end() ? 0.0 : found->second;
}

runtime::Status too_few_nodes(const std::string& key, std::int64_t wanted, std::size_t there) {
  return runtime::resource_exhausted(
      key + "=" + std::to_string(wanted) + ", but the cluster has " + std::to_string(there) +
      " node(s) with CPUs: start more with `starling start --address ADDRESS`, or set " + key);
}

}  // namespace

double WorkerSlots::gpu_share() const {
  constexpr double kParts = 10'000;  // rounded down: all shares together are at most a whole
  if (!has_gpus() || models < 1) return 0.0;
  return std::floor(kParts / static_cast<double>(models)) / kParts;
}

// Two roles and the kernels' own pool take turns on a slot: a waiting OpenMP thread must sleep, not
// spin. MKL's products depend on where their operands happen to lie, unless it is told not to: two
// equal runs would differ in the last digits. Sequences grow a token a step, and what is gathered
// of them with it: without segments that grow, CUDA's allocator keeps every size that there was.
std::map<std::string, std::string> worker_environment(const WorkerSlots& slots) {
  std::map<std::string, std::string> environment{{"OMP_WAIT_POLICY", "PASSIVE"},
                                                 {"MKL_CBWR", "AUTO,STRICT"}};
  const char* settings = std::getenv(kAllocatorSettings);
  if (slots.gpu_share() > 0)
    environment.emplace(kAllocatorSettings,
                        settings != nullptr ? settings : "expandable_segments:True");
  return environment;
}

Result<SlotOptions> SlotOptions::from_config(const Config& config) {
  ConfigReader read(config);
  SlotOptions options;
  options.nodes = read.get_int("trainer.nnodes");
  options.per_node = read.find_int("trainer.n_gpus_per_node").value_or(1);
  const std::optional<std::int64_t> cpus = read.find_int("trainer.cpus_per_worker");
  const std::optional<std::string> device = read.find_string("trainer.device");
  const double rank_timeout = read.get_float(kRankTimeoutKey);
  if (!read.status().ok()) return read.status();
  // verl's default is cuda: unless it is set, a CPU machine runs it on CPUs. Accelerators that verl
  // knows and LibTorch does not run on CPUs, too.
  if (device && config.is_set("trainer.device") && *device != "npu") options.device = *device;
  options.cpus_per_worker = static_cast<double>(cpus.value_or(0));
  options.rank_timeout = std::chrono::milliseconds(std::llround(rank_timeout * 1000.0));
  return options;
}

Result<WorkerSlots> reserve_slots(runtime::Runtime& runtime, const SlotOptions& options) {
  const Result<runtime::ClusterState> cluster = runtime.cluster().state();
  if (!cluster.ok()) return cluster.status();
  std::vector<double> cpus;
  for (const runtime::NodeInfo& node : cluster->nodes) {
    if (node.alive && node_cpus(node) > 0) cpus.push_back(node_cpus(node));
  }
  if (static_cast<std::int64_t>(cpus.size()) < options.nodes)
    return too_few_nodes(options.nodes_key, options.nodes, cpus.size());
  std::sort(cpus.begin(), cpus.end(), std::greater<>());

  WorkerSlots slots{.group = runtime::GroupId::random(),
                    .nodes = options.nodes,
                    .per_node = options.per_node,
                    .cpus = options.cpus_per_worker,
                    .device = options.device,
                    .models = options.models,
                    .rank_timeout = options.rank_timeout};
  if (slots.cpus == 0) {
    // All workers get the same, so the node with the fewest decides. Workers without a whole core
    // share one. CPUs that another job holds now count, too: the reservation waits for them.
    const bool shared =
        static_cast<std::int64_t>(cpus.size()) < options.nodes + options.beside_nodes;
    const double share =
        cpus[static_cast<std::size_t>(options.nodes) - 1] /
        static_cast<double>(options.per_node + (shared ? options.beside_per_node : 0));
    if (share < 0.01) {
      return runtime::invalid_argument(
          "trainer.n_gpus_per_node=" + std::to_string(options.per_node) +
          ": a node has too few CPUs for so many workers (at least a hundredth of one each)");
    }
    slots.cpus = share >= 1.0 ? std::floor(share) : std::floor(share * 100.0) / 100.0;
  }
  runtime::ResourceMap bundle{
      {"CPU", slots.cpus * static_cast<double>(slots.has_gpus() ? 1 : slots.per_node)}};
  if (slots.has_gpus()) bundle["GPU"] = 1;
  const bool spread = options.nodes > 1 && (!slots.has_gpus() || slots.per_node == 1);
  const runtime::GroupSpec spec{
      .group = slots.group,
      .name = "",
      .strategy = spread ? runtime::GroupStrategy::kStrictSpread : runtime::GroupStrategy::kPack,
      .bundles = std::vector<runtime::ResourceMap>(
          static_cast<std::size_t>(slots.has_gpus() ? slots.size() : options.nodes), bundle)};
  const Result<runtime::GroupState> placed = runtime.groups().create(spec).get();
  if (!placed.ok()) return placed.status().with_context("reserving slots for the workers");
  slots.group = placed->spec.group;
  return slots;
}

}  // namespace rl
