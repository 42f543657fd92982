// GGUF metadata as a ModelConfig: the keys are translated to those of config.json and read by the
// same code.
#pragma once

#include "rl/model/model_config.h"
#include "runtime/core/result.h"

namespace rl {

class GgufFile;

/// From `general.architecture`, `llama.*` and `tokenizer.ggml.*`. Errors: as ModelConfig::load().
runtime::Result<ModelConfig> model_config_from_gguf(const GgufFile& file);

}  // namespace rl
