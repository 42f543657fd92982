#include "rl/run/stage_memory.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <span>

#include "rl/actor/worker_slots.h"
#include "rl/model/lora.h"
#include "rl/model/model_config.h"
#include "rl/worker/frozen_sharding.h"
#include "rl/worker/fsdp_size.h"
#include "rl/worker/team_keys.h"
#include "rl/worker/zero_level.h"

namespace rl {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

namespace {

std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

}  // namespace

Result<RoleMemory> stage_memory(const StageSetup& setup, const DataStage& stage) {
  return stage_memory(setup, stage,
                      stage.row_lengths().of_length(std::numeric_limits<std::int64_t>::max()));
}

Result<RoleMemory> stage_memory(const StageSetup& setup, const DataStage& stage,
                                const RowLengths& given) {
  const Result<ModelConfig> model = ModelConfig::load(setup.model);
  if (!model.ok()) return model.status();
  const StageOptions& options = setup.options;
  RowLengths rows = given;
  rows.longest = std::min({rows.longest, options.tokens_max, model->max_position_embeddings});
  // Rows go to who has least, or to the leaf that has least, so that none gets more than its share
  // of the longest ones.
  const std::int64_t items = options.batch_rows * rows.items_per_row;
  const std::int64_t leaves = options.gradient_leaves > 0 ? options.gradient_leaves : setup.workers;
  const std::int64_t share = divide_up(items, setup.workers), leaf = divide_up(items, leaves);
  const std::int64_t learned = rows.of_pass(std::min(leaf, share), options.micro_batch);
  const Result<SlotOptions> slots = SlotOptions::from_config(setup.config);
  if (!slots.ok()) return slots.status();
  const bool on_device = slots->on_device();
  MemoryOptions memory{.forward_tokens = learned,
                       .output_tokens = learned,
                       .sequences = 0,
                       .positions = rows.longest,
                       .workers = setup.workers,
                       .zero = options.learner.zero,
                       .shard_ranks = options.learner.shard_ranks,
                       .sharing = options.learner.sharing,
                       .gradient_leaves = options.gradient_leaves,
                       .compresses_gradients = options.learner.compression.is_on(),
                       .orthogonalizes = options.learner.optimizer == OptimizerKind::kMuon,
                       .one_pass_leaves = rows.is_one_pass(leaf, options.micro_batch),
                       .recompute_layers = options.recompute_layers,
                       .bf16 = options.bf16,
                       .on_device = on_device};
  if (options.adapter) {
    const Result<LoraAdapter> adapter = options.adapter->folder.empty()
                                            ? LoraAdapter::create(*model, options.adapter->lora, 0)
                                            : LoraAdapter::load(*model, options.adapter->folder);
    if (!adapter.ok()) return adapter.status();
    memory.trained_elements = adapter->parameters().arena_size();
  }
  RoleMemory role{"worker", setup.workers, training_memory(*model, memory)};
  std::vector<DeviceMemory> devices = {device_memory(role, context_bytes(slots->device))};
  // What only scores takes all rows of a worker, whatever leaf they are of.
  MemoryOptions scoring = memory;
  scoring.forward_tokens = scoring.output_tokens =
      (rows.scores_other_responses ? rows.of_length(rows.longest) : rows)
          .of_pass(share, options.micro_batch);
  const Result<FrozenSharding> sharding =
      frozen_sharding_from_config(setup.config, kStageReferenceRole);
  if (!sharding.ok()) return sharding.status();
  scoring.zero = sharding->shards ? ZeroLevel::kWeights : ZeroLevel::kNone;
  for (const fs::path& frozen : stage.frozen_models()) {
    const Result<ModelConfig> other = ModelConfig::load(frozen);
    if (!other.ok()) return other.status();
    std::int64_t bytes = 0;
    const RoleMemory scores{"", setup.workers, scoring_memory(*other, scoring)};
    devices.push_back(device_memory(scores, /*context=*/0));  // it is the worker's process
    for (const MemoryPart& part : scores.parts)
      bytes += on_device && is_of_passes(part) ? 0 : part.bytes;
    role.parts.push_back({"frozen model", bytes});
  }
  if (!options.save.never() || !options.save_best.goal.metric.empty()) {
    for (MemoryPart& part : checkpoint_memory(*model, memory, options.copies()))
      role.parts.push_back(std::move(part));
  }
  if (on_device) {
    role.device_bytes = device_peak(devices);
    role.parts = host_memory(role.parts);
  }
  role.parts.push_back(process_memory(/*trains=*/true, on_device));
  return role;
}

std::optional<std::string> unseen_rows_note(const RowLengths& rows) {
  if (rows.all_seen()) return std::nullopt;
  return "the lengths of the first " + std::to_string(rows.rows_seen) + " of " +
         std::to_string(rows.rows) +
         " rows are known; the memory for longer ones behind them is "
         "not judged before they come";
}

Status judge_stage_fit(const StageSetup& setup, const DataStage& stage, const FitsNodes& fits,
                       std::optional<std::string>& note) {
  const Status divides = check_fsdp_size(setup.config, kStageRole, setup.workers);
  if (!divides.ok()) return divides;
  if (const Result<ModelConfig> model = ModelConfig::load(setup.model); model.ok()) {
    const Status shared = check_pass_sharing(setup.config, kStageRole, *model, setup.workers);
    if (!shared.ok()) return shared;
  }
  // What cannot be counted is found wrong by the workers, if it is.
  const Result<RoleMemory> most = stage_memory(setup, stage);
  if (!most.ok()) return {};
  const Status judged = fits(*most);
  if (judged.ok()) return judged;
  const RowLengths seen = stage.row_lengths();
  if (const Result<RoleMemory> least = stage_memory(setup, stage, seen); least.ok()) {
    const Status of_data = fits(*least);
    if (!of_data.ok())
      return of_data.with_context("with the data's rows of up to " +
                                  std::to_string(std::min(seen.longest, setup.options.tokens_max)) +
                                  " tokens");
  }
  note = "with rows of data.max_length (" + std::to_string(setup.options.tokens_max) + ") tokens " +
         std::string(judged.message());
  return {};
}

ZeroChoice settle_stage_zero(StageSetup& setup, const DataStage& stage, const SlotOptions& slots,
                             const FitsNodes& fits) {
  std::vector<ZeroRole> roles = {
      {kStageRole, [](const Config& config) { return StageOptions::from_config(config).ok(); }}};
  const bool has_key = setup.config.find(zero_level_key(kStageReferenceRole)) != nullptr;
  if (has_key && !stage.frozen_models().empty())
    roles.push_back({kStageReferenceRole,
                     [](const Config& config) {
                       return frozen_sharding_from_config(config, kStageReferenceRole).ok();
                     },
                     /*is_frozen=*/true});
  const auto sized_as = [&](const Config& config) {
    StageSetup sized = setup;
    sized.config = config;
    sized.options.learner.zero =
        zero_level_from_config(config, kStageRole).value_or(ZeroLevel::kNone);
    return sized;
  };
  const RowLengths seen = stage.row_lengths();
  for (const RowLengths& rows : {seen.of_length(std::numeric_limits<std::int64_t>::max()), seen}) {
    const Result<ZeroChoice> zero =
        choose_zero_levels(setup.config, roles, slots, [&](const Config& config) {
          const Result<RoleMemory> memory = stage_memory(sized_as(config), stage, rows);
          return memory.ok() ? fits(*memory) : Status();
        });
    if (!zero.ok()) continue;
    setup.config = zero->settled(setup.config);
    setup.options.learner.zero = sized_as(setup.config).options.learner.zero;
    return *zero;
  }
  return {};
}

}  // namespace rl
