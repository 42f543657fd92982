#include "rl/actor/worker_slots.h"

#include <cmath>
#include <cstdlib>

#include "rl/actor/slot_plan.h"
#include "rl/worker/team_keys.h"

namespace rl {
namespace {

using runtime::Result;

constexpr const char* kAllocatorSettings = "PYTORCH_ALLOC_CONF";

}  // namespace

double WorkerSlots::gpu_share() const {
  constexpr double kParts = 10'000;  // rounded down: all shares together are at most a whole
  if (!has_gpus() || models < 1) return 0.0;
  return std::floor(kParts / static_cast<double>(models)) / kParts;
}

Result<WorkerSlots> WorkerSlots::in_teams_of(const Config& config, const std::string& role) const {
  const runtime::Status divides = check_teams(config, role, size());
  if (!divides.ok()) return divides;
  const Result<PassSharing> sharing = pass_sharing_from_config(config, role);
  if (!sharing.ok()) return sharing.status();
  WorkerSlots slots = *this;
  slots.team = sharing->team();
  return slots;
}

// Two roles and the kernels' own pool take turns on a slot: a waiting OpenMP thread must sleep, not
// spin. MKL's products depend on where their operands happen to lie, unless it is told not to: two
// equal runs would differ in the last digits. Sequences grow by a token a step, and the tensors
// gathered for them grow, too. Without segments that grow, CUDA's allocator keeps every size that
// there was.
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
  const Result<SlotPlan> plan = plan_slots(options, node_rooms(cluster->nodes));
  if (!plan.ok()) return plan.status();
  const runtime::GroupSpec spec{.group = runtime::GroupId::random(),
                                .name = "",
                                .strategy = plan->strategy,
                                .bundles = plan->bundles};
  const Result<runtime::GroupState> placed = runtime.groups().create(spec).get();
  if (!placed.ok()) {
    const runtime::Status status = placed.status().with_context("reserving slots for the workers");
    if (status.code() != runtime::ErrorCode::kResourceExhausted ||
        !spec.bundles.front().contains("memory"))
      return status;
    return runtime::resource_exhausted(
        status.message() +
        "; a run reserves its memory, as --dry-run shows it, until it ends: fewer workers "
        "(trainer.n_gpus_per_node) and smaller micro-batches take less");
  }
  return WorkerSlots{.group = placed->spec.group,
                     .nodes = options.nodes,
                     .per_node = options.per_node,
                     .cpus = plan->cpus,
                     .device = options.device,
                     .models = options.models,
                     .rank_timeout = options.rank_timeout};
}

}  // namespace rl
