#include "rl/stage/stage_memory.h"

#include <algorithm>
#include <filesystem>

#include "rl/model/lora.h"
#include "rl/model/model_config.h"

namespace rl {

namespace fs = std::filesystem;
using runtime::Result;

Result<RoleMemory> stage_memory(const StageSetup& setup, const Stage& stage) {
  const Result<ModelConfig> model = ModelConfig::load(setup.model);
  if (!model.ok()) return model.status();
  const StageOptions& options = setup.options;
  const std::int64_t share = (options.batch_rows + setup.workers - 1) / setup.workers;
  const std::int64_t longest = std::min(options.tokens_max, model->max_position_embeddings);
  const std::int64_t limit = options.micro_batch.samples_max > 0
                                 ? options.micro_batch.samples_max * longest
                                 : std::max(options.micro_batch.tokens_max, longest);
  const std::int64_t forward = std::min(limit, share * longest);
  MemoryOptions memory{.forward_tokens = forward,
                       .output_tokens = forward,
                       .sequences = 0,
                       .positions = longest,
                       .recompute_layers = options.recompute_layers,
                       .bf16 = options.bf16};
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
    for (const MemoryPart& part : scoring_memory(*other, memory)) bytes += part.bytes;
    role.parts.push_back({"frozen model", bytes});
  }
  if (options.copies())
    role.parts.push_back(checkpoint_memory(memory.trained_elements >= 0 ? memory.trained_elements
                                                                        : weight_elements(*model)));
  role.parts.push_back(process_memory(/*trains=*/true));
  return role;
}

}  // namespace rl
