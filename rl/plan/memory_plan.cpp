#include "rl/plan/memory_plan.h"

#include <algorithm>
#include <cstdio>

#include "rl/config/number_text.h"
#include "rl/mesh/pass_schedule.h"
#include "rl/mesh/pass_streaming.h"
#include "rl/model/arena_units.h"
#include "rl/model/family.h"
#include "rl/model/ops.h"
#include "rl/model/padded_attention.h"
#include "rl/model/parameters.h"
#include "rl/model/pass_parts.h"
#include "rl/model/stage_cuts.h"
#include "rl/model/transformer.h"
#include "rl/optim/hidden_matrices.h"
#include "rl/optim/optimizer_shards.h"
#include "rl/optim/orthogonalize.h"
#include "rl/optim/unit_shards.h"
#include "rl/optim/unit_sums.h"
#include "rl/rollout/engine_options.h"

namespace rl {
namespace {

using runtime::Result;

constexpr std::int64_t kElement = sizeof(float);
constexpr std::int64_t kGatheredMax = 2 * (256 << 20);  // PagedAttention's, of keys and of values
constexpr const char* kScores = "attention scores";
constexpr const char* kGathered = "gathered keys and values";
constexpr const char* kLeafGradients = "gradients of a leaf";
constexpr const char* kSumBuckets = "buckets of sums";
constexpr const char* kResidual = "residual of gradients";
constexpr const char* kUnits = "gathered units";
constexpr const char* kUnitsOnHost = "units between host and device";
constexpr std::int64_t kBucketBytes = kElement * UnitSums::kInOneExchange;  // of a sum under way

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Blocks are taken as sequences grow, and no more of them than the cache has.
std::int64_t cache_bytes(const ModelConfig& config, const MemoryOptions& options) {
  const EngineOptions engine;
  const std::int64_t together =
      options.sequences_max > 0 ? options.sequences_max : engine.sequences_max;
  const std::int64_t tokens = std::min(options.sequences, together) *
                              round_up(options.positions, engine.cache.block_tokens);
  const std::int64_t all = tokens * cache_token_bytes(config);
  return options.on_device ? all : std::min(engine.cache.bytes_max, all);
}

// Logits that are computed at a time.
std::int64_t logit_chunk_bytes(const ModelConfig& config, const MemoryOptions& options) {
  const std::int64_t row = config.vocab_size * kElement;
  const std::int64_t chunk = LogprobOptions().logit_rows_max * row;
  return std::min(options.output_tokens * row,
                  options.on_device ? std::max(chunk, ops::kDeviceLogitBytes) : chunk);
}

// Logits that backward keeps; beyond that it computes some rows at a time again.
std::int64_t logit_bytes(const ModelConfig& config, const MemoryOptions& options) {
  const LogprobOptions logprobs;
  const std::int64_t all = options.output_tokens * config.vocab_size * kElement;
  const std::int64_t chunk = std::min(all, logit_chunk_bytes(config, options));
  // Those that are kept are dealt within a stage, and a chunk is whole at a time.
  if (options.sharing.ranks > 1) {
    const std::int64_t ranks = options.sharing.ranks;
    return (std::min(all, logprobs.kept_bytes_max) + ranks - 1) / ranks + chunk;
  }
  return all <= logprobs.kept_bytes_max ? all : logprobs.kept_bytes_max + chunk;
}

std::int64_t trained_elements(const ModelConfig& config, const MemoryOptions& options) {
  return options.trained_elements >= 0 ? options.trained_elements : weight_elements(config);
}

// What is kept once; see Learner::make_shards. An adapter is small: its gradients are on each.
struct Sharding {
  bool moments = false;
  bool gradients = false;
  bool weights = false;  // those of the model, next to an adapter as well
};

// Workers that share passes keep gradients once.
Sharding sharding_of(const MemoryOptions& options) {
  ZeroLevel level = options.workers > 1 ? options.zero : ZeroLevel::kNone;
  if (options.sharing.team() > 1) level = std::max(level, ZeroLevel::kGradients);
  return {.moments = level >= ZeroLevel::kMoments,
          .gradients = level >= ZeroLevel::kGradients && options.trained_elements < 0,
          .weights = level == ZeroLevel::kWeights};
}

// Whether a pipeline's stages go on to the next pass of a leaf; see StreamedPasses.
bool streams(const MemoryOptions& options) {
  return streams_passes(options.sharing, options.zero) && !options.one_pass_leaves;
}

// The activations that a stage of it has at a time, of N bytes of a pass through all its chunks.
std::int64_t in_flight_bytes(std::int64_t pass, int stage, const MemoryOptions& options) {
  if (!streams(options)) return pass;
  const auto stages = static_cast<int>(options.sharing.stages);
  const auto chunks = static_cast<int>(options.sharing.chunks);
  return chunks_in_flight_max(stage, stages, chunks) * pass / chunks;
}

// The passes whose embeddings' gradients the last stage waits for while it goes on.
std::int64_t waiting_passes_max(const MemoryOptions& options) {
  if (!streams(options)) return 0;
  constexpr std::size_t kGroups = 4;  // from the second on the number stays the same
  const std::vector<std::size_t> waiting = passes_not_through(
      static_cast<int>(options.sharing.stages), static_cast<int>(options.sharing.chunks),
      kGroups * static_cast<std::size_t>(options.sharing.stages));
  return static_cast<std::int64_t>(*std::max_element(waiting.begin(), waiting.end()));
}

// Of the stage that has the most.
std::int64_t layers_of_stage(const ModelConfig& config, const PassSharing& sharing) {
  const auto stages = static_cast<int>(sharing.stages);
  const StageCuts cuts(config, parameter_layout(config), stages, static_cast<int>(sharing.chunks));
  std::int64_t most = 0;
  for (int stage = 0; stage < stages; ++stage) most = std::max(most, cuts.layers_of(stage));
  return most;
}

// What the last stage keeps of other passes until the gradients of their embeddings have come; see
// TiedTableSum.
std::int64_t waiting_rows_bytes(const ModelConfig& config, const MemoryOptions& options) {
  const std::int64_t others = waiting_passes_max(options);
  const bool is_trained = config.tie_word_embeddings && options.trained_elements < 0;
  if (others == 0 || !is_trained) return 0;
  const std::int64_t rows = std::min(config.vocab_size, others * options.forward_tokens);
  return others * options.output_tokens * (rows + config.hidden_size) * kElement;
}

// What a worker keeps of N bytes that are kept once.
std::int64_t share_of(std::int64_t bytes, const MemoryOptions& options) {
  return (bytes + options.workers - 1) / options.workers;
}

// What it keeps of the weights at level 3: with the others of its group, all.
std::int64_t kept_weights(std::int64_t bytes, const MemoryOptions& options) {
  const std::int64_t ranks = options.shard_ranks > 0 ? options.shard_ranks : options.workers;
  return (bytes + ranks - 1) / ranks;
}

// The units as a worker's passes read them and give them gradients; where several share a pass,
// those of the one that has the most.
std::vector<ArenaUnit> units_of(const ModelConfig& config, const MemoryOptions& options) {
  const std::vector<ParameterSpec> specs = parameter_layout(config);
  std::vector<ArenaUnit> units = arena_units(config, specs);
  if (!options.sharing.cuts_weights()) return units;
  const PassParts parts = pass_parts(config, specs, options.sharing);
  const RangeSet& used = *std::max_element(
      parts.used.begin(), parts.used.end(),
      [](const RangeSet& a, const RangeSet& b) { return a.elements() < b.elements(); });
  for (ArenaUnit& unit : units) {
    unit.own = unit.own.intersected(used);
    unit.read = unit.read.intersected(used);
  }
  return units;
}

std::int64_t used_elements(std::span<const ArenaUnit> units) {
  std::int64_t sum = 0;
  for (const ArenaUnit& unit : units) sum += unit.own.elements();
  return sum;
}

// The gradients that are there at a time, where a pass adds up and drops unit after unit (see
// UnitSums). They are those of one unit. The embeddings' come with the first layer's, and with all
// units' where they are tied.
std::int64_t gradients_in_pass(std::span<const ArenaUnit> units) {
  const std::int64_t embeddings = units.front().own.elements();
  const bool tied = !units.back().borrowed().empty();
  std::int64_t most = 0;
  for (std::size_t unit = 1; unit < units.size(); ++unit) {
    // The one behind it is on its way to the homes, unless it goes by buckets.
    const std::int64_t behind = unit + 1 < units.size() ? units[unit + 1].own.elements() : 0;
    most = std::max(most, units[unit].own.elements() + (tied || unit == 1 ? embeddings : 0) +
                              (behind <= UnitSums::kInOneExchange ? behind : 0));
  }
  return most;
}

// The weights that are there at a time, where one unit is read while the next one comes; see
// UnitWeights.
std::int64_t weights_in_pass(std::span<const ArenaUnit> units) {
  std::int64_t most = 0;
  for (std::size_t unit = 1; unit < units.size(); ++unit)
    most = std::max(most, units[unit - 1].read.elements() + units[unit].read.elements());
  return most;
}

// Of each arena that comes by units, one on its way between a device and other workers.
void add_units_on_host(std::vector<MemoryPart>& parts, std::span<const ArenaUnit> units,
                       int arenas) {
  std::int64_t largest = 0;
  for (const ArenaUnit& unit : units) largest = std::max(largest, unit.read.elements());
  parts.push_back({kUnitsOnHost, kElement * largest * arenas});
}

// What is there of gradients and weights only while passes are made, where it is kept once.
void add_units(std::vector<MemoryPart>& parts, const ModelConfig& config,
               const MemoryOptions& options) {
  const Sharding sharded = sharding_of(options);
  const bool is_part = sharded.weights || options.sharing.cuts_weights();
  if (!sharded.gradients && !is_part) return;
  const std::vector<ArenaUnit> units = units_of(config, options);
  const std::int64_t used = used_elements(units);
  if (sharded.gradients) {
    std::int64_t largest = 0;
    for (const ArenaUnit& unit : units) largest = std::max(largest, unit.own.elements());
    const std::int64_t leaf =
        kElement * (options.one_pass_leaves ? gradients_in_pass(units) : used);
    // Or, when they have gone, the copy of its weights that the optimizer works on.
    parts.push_back(
        {kLeafGradients, std::max(leaf, share_of(kElement * weight_elements(config), options))});
    parts.push_back({kSumBuckets, std::min(kBucketBytes, kElement * largest)});
  }
  if (sharded.weights) {
    parts.push_back(
        {kUnits, kElement * (options.reshard_after_forward ? weights_in_pass(units) : used)});
  }
  if (options.on_device)
    add_units_on_host(parts, units,
                      static_cast<int>(sharded.weights) + static_cast<int>(sharded.gradients));
  if (is_part && options.sequences > 0)
    parts.push_back({kGatheredPart, kElement * weight_elements(config)});
}

// The homes that the optimizer's state is kept by; empty: each worker has all.
std::vector<RangeSet> optimizer_homes(const ModelConfig& config, const MemoryOptions& options) {
  const Sharding sharded = sharding_of(options);
  const auto ranks = static_cast<int>(options.workers);
  if (!sharded.moments) return {};
  const std::vector<ParameterSpec> specs = parameter_layout(config);
  if (sharded.gradients) {
    const bool grouped = sharded.weights && options.shard_ranks > 0;
    return homes_of(arena_units(config, specs), arena_elements(specs), ranks,
                    grouped ? static_cast<int>(options.shard_ranks) : ranks);
  }
  std::vector<RangeSet> homes;
  for (const ArenaRange& range : moment_homes(arena_elements(specs), ranks))
    homes.emplace_back(RangeSet{range});
  return homes;
}

// Those of an adapter are small.
void add_matrices(std::vector<MemoryPart>& parts, const ModelConfig& config,
                  const MemoryOptions& options) {
  if (!options.orthogonalizes || options.trained_elements >= 0) return;
  const std::vector<ArenaMatrix> matrices = hidden_matrices(parameter_layout(config));
  const MatrixDeal deal(matrices, optimizer_homes(config, options),
                        static_cast<int>(options.workers));
  std::int64_t largest = 0;
  for (const ArenaMatrix& one : matrices)
    largest = std::max(largest, one.elements() + orthogonalize_elements(one.rows, one.columns));
  std::int64_t bytes = kElement * (largest + deal.most_in_piece());
  if (sharding_of(options).gradients)
    bytes += share_of(kElement * weight_elements(config), options);
  parts.push_back({kMatricesPart, bytes});
}

}  // namespace

bool is_of_passes(const MemoryPart& part) {
  return part.name == "activations" || part.name == "bf16 copies" || part.name == kScores ||
         part.name == kGathered || part.name == kLeafGradients || part.name == kSumBuckets ||
         part.name == kUnits;
}

namespace {

bool comes_and_goes(const MemoryPart& part) {
  return is_of_passes(part) || part.name == kGatheredPart || part.name == kMatricesPart;
}

}  // namespace

std::int64_t bytes_in_calls(std::span<const MemoryPart> parts) {
  std::int64_t gathered = 0, matrices = 0;
  for (const MemoryPart& part : parts) {
    gathered += part.name == kGatheredPart ? part.bytes : 0;
    matrices += part.name == kMatricesPart ? part.bytes : 0;
  }
  return std::max({pass_bytes(parts), gathered, matrices});
}

std::int64_t RoleMemory::total() const {
  std::int64_t sum = bytes_in_calls(parts);
  for (const MemoryPart& part : parts) sum += comes_and_goes(part) ? 0 : part.bytes;
  return sum;
}

std::int64_t weight_elements(const ModelConfig& config) {
  return arena_elements(parameter_layout(config));
}

// What a layer keeps: the inputs of both norms, queries, keys and values, attention's output, and
// the MLP's gate and up. What lies between is computed again, except that an adapter's gradient
// takes the inputs of the layers that it is put on.
std::int64_t activation_bytes(const ModelConfig& config, bool adapter) {
  const std::int64_t query = config.heads * config.head_dim;
  const std::int64_t key = config.kv_heads * config.head_dim;
  const std::int64_t mlp = config.moe
                               ? config.moe->experts_per_token * config.moe->intermediate_size +
                                     config.moe->shared_intermediate_size
                               : config.intermediate_size;
  const std::int64_t inputs = adapter ? 2 * config.hidden_size + mlp : 0;
  return config.layers * (2 * config.hidden_size + 2 * query + 2 * key + 2 * mlp + inputs) *
         kElement;
}

std::vector<MemoryPart> checkpoint_memory(const ModelConfig& config, const MemoryOptions& options,
                                          bool copies) {
  if (!copies) return {};
  const std::int64_t trained = trained_elements(config, options) * kElement;
  if (!sharding_of(options).moments) return {{kCheckpointPart, 3 * trained}};
  if (options.trained_elements < 0) return {{kCheckpointShare, share_of(3 * trained, options)}};
  // Each has an adapter's weights whole.
  return {{kCheckpointShare, trained + share_of(2 * trained, options)}};
}

namespace {

// What attention makes on a device, where the kernels of a CPU need no such memory. It makes the
// scores of a batch (three times in backward) and which queries see which keys. It also has the
// cached keys and values of a step in one piece.
void add_device_attention(std::vector<MemoryPart>& parts, const ModelConfig& config,
                          const MemoryOptions& options) {
  if (!options.on_device) return;
  const std::int64_t cells = 2 * options.forward_tokens * options.positions;  // padded
  const std::int64_t batch = std::max(forward::AttentionLimits().score_bytes_max,
                                      config.heads * options.positions * kElement);
  parts.push_back({kScores, 3 * std::min(batch, cells * config.heads * kElement) +
                                std::min(cells, forward::kHiddenBytesMax)});
  if (options.sequences > 0)
    parts.push_back(
        {kGathered, std::min(kGatheredMax, cache_bytes(config, options) / config.layers)});
}

// Without leaves a pass of a team has the rows of all its ranks; see JointPass.
MemoryOptions with_joint_passes(MemoryOptions options) {
  const PassSharing& sharing = options.sharing;
  const bool joint =
      !sharing.deals_weights() && options.gradient_leaves == 0 && options.trained_elements < 0;
  if (!joint) return options;
  options.forward_tokens *= sharing.ranks;
  options.output_tokens *= sharing.ranks;
  return options;
}

}  // namespace

std::vector<MemoryPart> training_memory(const ModelConfig& config, const MemoryOptions& planned) {
  const MemoryOptions options = with_joint_passes(planned);
  const std::int64_t weights = weight_elements(config) * kElement;
  const std::int64_t trained = trained_elements(config, options) * kElement;
  const Sharding sharded = sharding_of(options);
  std::int64_t held = sharded.weights ? kept_weights(weights, options) : weights;
  // What passes read, and the part that the optimizer works on.
  if (!sharded.weights && options.sharing.cuts_weights())
    held = kElement * used_elements(units_of(config, options)) + share_of(weights, options);
  if (options.trained_elements >= 0) held += trained;
  std::vector<MemoryPart> parts = {{"weights", held}};
  if (sharded.gradients)
    parts.push_back({"sum of gradients", share_of(trained, options)});
  else  // of an adapter in some teams those of the worker's own leaf apart: see AdapterLeaves
    parts.push_back({"gradients", options.sharing.deals_weights() ? 2 * trained : trained});
  parts.push_back({"optimizer", sharded.moments ? share_of(2 * trained, options) : 2 * trained});
  if (!sharded.gradients && options.gradient_leaves > options.workers)
    parts.push_back({"sum of leaves", share_of(trained, options)});
  if (options.compresses_gradients && options.workers > 1) {
    parts.push_back({kResidual, trained});
    parts.push_back({kSumBuckets, std::min(kBucketBytes, trained)});
  }
  if (options.sequences > 0) parts.push_back({"KV cache", cache_bytes(config, options)});
  std::int64_t kept = activation_bytes(config, options.trained_elements >= 0);
  std::int64_t layers = config.layers;  // that a worker has
  if (options.sharing.stages > 1) {
    layers = layers_of_stage(config, options.sharing);
    kept = kept / config.layers * layers;
  }
  if (options.sharing.ranks > 1) {
    // Where outputs are cut the inputs of both norms are whole.
    const std::int64_t inputs =
        !cuts_rows(options.sharing.cut) ? layers * 2 * config.hidden_size * kElement : 0;
    kept = inputs + (kept - inputs + options.sharing.ranks - 1) / options.sharing.ranks;
  }
  // What enters each layer, and the inside of the one that backward is at.
  const std::int64_t token =
      options.recompute_layers ? kept / layers + layers * config.hidden_size * kElement : kept;
  // Of a pipeline the first stage has the most passes in flight, and the last one has the logits.
  const std::int64_t pass = options.forward_tokens * token, logits = logit_bytes(config, options);
  const auto last = static_cast<int>(options.sharing.stages) - 1;
  parts.push_back({"activations", std::max(in_flight_bytes(pass, last, options) + logits +
                                               waiting_rows_bytes(config, options),
                                           in_flight_bytes(pass, /*stage=*/0, options))});
  // The output layer's weight while its log-probs are known and not yet gone back through, and what
  // a layer's products round: its weights, its rows.
  const std::int64_t widest = std::max(config.intermediate_size, config.heads * config.head_dim);
  if (options.bf16)
    parts.push_back(
        {"bf16 copies", (config.vocab_size * config.hidden_size + 2 * widest * config.hidden_size +
                         2 * options.forward_tokens * widest) *
                            2});
  add_device_attention(parts, config, options);
  add_units(parts, config, options);
  add_matrices(parts, config, options);
  return parts;
}

std::vector<MemoryPart> scoring_memory(const ModelConfig& config, const MemoryOptions& options) {
  // Without backward, only what the next layer reads lives on.
  const std::int64_t widest = 4 * config.hidden_size + 3 * std::max(config.intermediate_size,
                                                                    config.heads * config.head_dim);
  const std::int64_t weights = weight_elements(config) * kElement;
  const bool sharded = options.workers > 1 && options.zero == ZeroLevel::kWeights;
  std::vector<MemoryPart> parts = {{"weights", sharded ? kept_weights(weights, options) : weights},
                                   {"activations", options.forward_tokens * widest * kElement +
                                                       logit_chunk_bytes(config, options)}};
  if (sharded) {
    const std::vector<ArenaUnit> units = arena_units(config, parameter_layout(config));
    parts.push_back({kUnits, kElement * weights_in_pass(units)});
    if (options.on_device) add_units_on_host(parts, units, /*arenas=*/1);
  }
  add_device_attention(parts, config, options);
  return parts;
}

std::int64_t cache_token_bytes(const ModelConfig& config) {
  return config.layers * config.kv_size() * 2 * kElement;
}

std::int64_t tokens_that_fit(const ModelConfig& config, MemoryOptions options, std::int64_t tokens,
                             std::int64_t bytes) {
  constexpr std::int64_t kLeast = 2048;
  for (; tokens > kLeast; tokens = std::max(kLeast, tokens / 2)) {
    options.forward_tokens = options.output_tokens = tokens;
    if (pass_bytes(training_memory(config, options)) <= bytes) break;
  }
  return tokens;
}

std::int64_t pass_bytes(std::span<const MemoryPart> parts) {
  std::int64_t sum = 0;
  for (const MemoryPart& part : parts) sum += is_of_passes(part) ? part.bytes : 0;
  return sum;
}

std::int64_t device_context_bytes() {
  constexpr std::int64_t kContext = 500'000'000;  // published figures: 0.4 to 0.6 GB
  constexpr std::int64_t kWorkspace = 32 << 20;   // as LibTorch asks for it on Hopper
  constexpr std::int64_t kThreads = 2;
  return kContext + kThreads * kWorkspace;
}

Result<std::int64_t> plan_cache(const CachePlan& plan) {
  const EngineOptions engine;
  const std::int64_t sequence =
      round_up(plan.longest, engine.cache.block_tokens) * plan.token_bytes;
  const auto allowed =
      static_cast<std::int64_t>(static_cast<double>(plan.device_total) * plan.utilization);
  const std::int64_t room = std::min(allowed - plan.weights, plan.device_free - plan.passes);
  if (room >= sequence) return std::min(room, plan.sequences * sequence);
  return runtime::resource_exhausted(
      "the device has " + bytes_text(plan.device_free) + " of " + bytes_text(plan.device_total) +
      " free: next to weights of " + bytes_text(plan.weights) + " and " + bytes_text(plan.passes) +
      " for passes, keys and values of one sequence of " + std::to_string(plan.longest) +
      " tokens (" + bytes_text(sequence) +
      ") do not fit; raise actor_rollout_ref.rollout.gpu_memory_utilization (" +
      number_text(plan.utilization) +
      "), or lower actor_rollout_ref.actor.ppo_max_token_len_per_gpu or "
      "data.max_response_length");
}

namespace {

// Gradients are added up on the host, wherever they come from.
bool is_of_device_passes(const MemoryPart& part) {
  return is_of_passes(part) && part.name != kSumBuckets;
}

}  // namespace

// What comes by units goes back to the device behind each pass, whatever the process keeps. Then
// the weights that stay are on the host.
DeviceMemory device_memory(const RoleMemory& role, std::int64_t context) {
  DeviceMemory memory{.concurrent = role.concurrent};
  const auto has = [&role](const char* name) {
    return std::ranges::any_of(role.parts,
                               [name](const MemoryPart& part) { return part.name == name; });
  };
  const bool weights_by_units = has(kUnits);
  std::int64_t gathered = 0, units = 0;
  for (const MemoryPart& part : role.parts) {
    if (part.name == "weights" && !weights_by_units)
      (role.weights_leave ? memory.at_work : memory.always) += part.bytes;
    if (part.name == "gradients")
      (role.gradients_leave ? memory.at_work : memory.always) += part.bytes;
    if (part.name == "KV cache") memory.always += part.bytes;
    if (part.name == kGatheredPart) gathered += part.bytes;
    if (part.name == kUnits || part.name == kLeafGradients)
      units += part.bytes;
    else if (is_of_device_passes(part))
      (role.weights_leave || role.gradients_leave ? memory.at_work : memory.always) += part.bytes;
  }
  memory.at_work = std::max(memory.at_work + units, gathered);
  if (has("weights")) memory.always += context;
  return memory;
}

std::vector<MemoryPart> host_memory(std::span<const MemoryPart> parts) {
  std::vector<MemoryPart> host;
  for (const MemoryPart& part : parts) {
    if (part.name != "KV cache" && part.name != kGatheredPart && !is_of_device_passes(part))
      host.push_back(part);
  }
  return host;
}

std::int64_t device_peak(std::span<const DeviceMemory> roles) {
  std::int64_t always = 0, at_work = 0, concurrent = 0;
  for (const DeviceMemory& role : roles) {
    always += role.always;
    if (role.concurrent)
      concurrent += role.at_work;
    else
      at_work = std::max(at_work, role.at_work);
  }
  return always + concurrent + at_work;
}

// Measured, with clang 14 and LibTorch 2.11; on a device with CUDA 13.0 and driver 580 on an H200.
MemoryPart process_memory(bool trains, bool on_device) {
  constexpr std::int64_t kCuda = 1'090'000'000;
  return {"process", (trains ? 160'000'000 : 136'000'000) + (on_device ? kCuda : 0)};
}

std::string bytes_text(std::int64_t bytes) {
  static const char* const kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, value < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", value,
                kUnits[unit]);
  return text;
}

}  // namespace rl
