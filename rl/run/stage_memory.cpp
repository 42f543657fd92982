#include "rl/run/stage_memory.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <span>

#include "rl/actor/worker_group.h"
#include "rl/config/stage_keys.h"
#include "rl/model/lora.h"
#include "rl/model/model_config.h"
#include "rl/worker/tensor_ranks.h"
#include "rl/worker/zero_level.h"

namespace rl {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

Result<RoleMemory> stage_memory(const StageSetup& setup, const DataStage& stage,
                                std::int64_t row_tokens) {
  const Result<ModelConfig> model = ModelConfig::load(setup.model);
  if (!model.ok()) return model.status();
  const StageOptions& options = setup.options;
  const std::int64_t share = (options.batch_rows + setup.workers - 1) / setup.workers;
  const std::int64_t longest =
      std::min(std::min(row_tokens, options.tokens_max), model->max_position_embeddings);
  const std::int64_t limit = options.micro_batch.samples_max > 0
                                 ? options.micro_batch.samples_max * longest
                                 : std::max(options.micro_batch.tokens_max, longest);
  const std::int64_t forward = std::min(limit, share * longest);
  const Result<SlotOptions> slots = SlotOptions::from_config(setup.config);
  if (!slots.ok()) return slots.status();
  const bool on_device = slots->on_device();
  const bool pairs = setup.config.command() != sft_keys().command();  // a row may be two sequences
  const std::int64_t leaves = options.gradient_leaves > 0 ? options.gradient_leaves : setup.workers;
  const std::int64_t leaf_rows = (options.batch_rows + leaves - 1) / leaves * (pairs ? 2 : 1);
  MemoryOptions memory{.forward_tokens = forward,
                       .output_tokens = forward,
                       .sequences = 0,
                       .positions = longest,
                       .workers = setup.workers,
                       .zero = options.learner.zero,
                       .tensor = options.learner.tensor,
                       .gradient_leaves = options.gradient_leaves,
                       .one_pass_leaves = leaf_rows * longest <= limit,
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
  for (const fs::path& frozen : stage.frozen_models()) {
    const Result<ModelConfig> other = ModelConfig::load(frozen);
    if (!other.ok()) return other.status();
    std::int64_t bytes = 0;
    for (const MemoryPart& part : scoring_memory(*other, memory))
      bytes += on_device && is_of_passes(part) ? 0 : part.bytes;
    role.parts.push_back({"frozen model", bytes});
  }
  if (!options.save.never() || !options.save_best.goal.metric.empty()) {
    for (MemoryPart& part : checkpoint_memory(*model, memory, options.copies()))
      role.parts.push_back(std::move(part));
  }
  if (on_device) role.parts = host_memory(role.parts);
  role.parts.push_back(process_memory(/*trains=*/true));
  return role;
}

Status judge_stage_fit(const StageSetup& setup, const DataStage& stage, const FitsNodes& fits,
                       std::optional<std::string>& note) {
  if (const Result<ModelConfig> model = ModelConfig::load(setup.model); model.ok()) {
    const Status shared = check_tensor_ranks(setup.config, kStageRole, *model, setup.workers);
    if (!shared.ok()) return shared;
  }
  // What cannot be counted is found wrong by the workers, if it is.
  const Result<RoleMemory> most = stage_memory(setup, stage);
  if (!most.ok()) return {};
  const Status judged = fits(*most);
  if (judged.ok()) return judged;
  const std::int64_t seen = stage.longest_row();
  if (const Result<RoleMemory> least = stage_memory(setup, stage, seen); least.ok()) {
    const Status of_data = fits(*least);
    if (!of_data.ok())
      return of_data.with_context("with the data's rows of up to " +
                                  std::to_string(std::min(seen, setup.options.tokens_max)) +
                                  " tokens");
  }
  note = "with rows of data.max_length (" + std::to_string(setup.options.tokens_max) + ") tokens " +
         std::string(judged.message());
  return {};
}

ZeroChoice settle_stage_zero(StageSetup& setup, const DataStage& stage, const SlotOptions& slots,
                             const FitsNodes& fits) {
  const ZeroRole role{kStageRole,
                      [](const Config& config) { return StageOptions::from_config(config).ok(); }};
  const auto sized_as = [&](const Config& config) {
    StageSetup sized = setup;
    sized.options.learner.zero =
        zero_level_from_config(config, kStageRole, setup.options.learner.optimizer)
            .value_or(ZeroLevel::kNone);
    return sized;
  };
  for (const std::int64_t row_tokens :
       {std::numeric_limits<std::int64_t>::max(), stage.longest_row()}) {
    const Result<ZeroChoice> zero =
        choose_zero_levels(setup.config, std::span(&role, 1), slots, [&](const Config& config) {
          const Result<RoleMemory> memory = stage_memory(sized_as(config), stage, row_tokens);
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
