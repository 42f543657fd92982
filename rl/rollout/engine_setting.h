// Private to rl/rollout: what stays the same for an engine's requests.
#pragma once

#include <cstdint>
#include <vector>

#include "rl/rollout/engine_options.h"
#include "rl/rollout/request.h"

namespace rl {

class Transformer;

struct EngineSetting {
  EngineSetting(const Transformer& model, const EngineOptions& options);

  const Transformer& model;
  const EngineOptions options;
  const std::vector<std::int32_t> end_ids;  // the model's end-of-sequence ids, the tokenizer's

  std::int64_t context_max() const;
  /// The ids that end a sample, sorted, each once.
  std::vector<std::int32_t> stop_ids(const SamplingParams& params) const;
};

}  // namespace rl
