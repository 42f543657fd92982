#include "rl/rollout/engine_setting.h"

#include <algorithm>

#include "rl/model/transformer.h"

namespace rl {
namespace {

// What a chat tokenizer ends its turns with may be missing from the config of the base model that
// was given it.
std::vector<std::int32_t> all_end_ids(const ModelConfig& config, const EngineOptions& options) {
  std::vector<std::int32_t> ids = config.eos_ids;
  ids.insert(ids.end(), options.end_ids.begin(), options.end_ids.end());
  if (const auto end = options.tokenizer ? options.tokenizer->eos_id() : std::nullopt)
    ids.push_back(*end);
  std::erase_if(ids, [&config](std::int32_t id) { return id < 0 || id >= config.vocab_size; });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

EngineSetting::EngineSetting(const Transformer& used, const EngineOptions& chosen)
    : model(used), options(chosen), end_ids(all_end_ids(used.config(), chosen)) {}

std::int64_t EngineSetting::context_max() const {
  const std::int64_t model_max = model.config().max_position_embeddings;
  return options.context_max > 0 ? std::min(options.context_max, model_max) : model_max;
}

std::vector<std::int32_t> EngineSetting::stop_ids(const SamplingParams& params) const {
  std::vector<std::int32_t> ids = params.stop_ids;
  if (!params.ignore_eos) ids.insert(ids.end(), end_ids.begin(), end_ids.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace rl
