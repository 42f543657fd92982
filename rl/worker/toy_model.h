// The toy model: tiny, made on demand for the toy tasks, trains within a minute on one core.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// The name of the toy model in `actor_rollout_ref.model.path`; in `data.dataset_name`, `toy`
/// stands for the toy data.
inline constexpr const char* kToyModelName = "toy";

/// Sizes of the toy model. The defaults have 0.3 million parameters.
struct ToyModelOptions {
  std::int64_t layers = 3;
  std::int64_t hidden_size = 96;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t intermediate_size = 256;
  std::int64_t positions = 64;
  std::uint64_t seed = 1;
};

/// Writes a Llama-family Hugging Face folder with random weights and the toy tokenizer, one id per
/// character. Equal options give equal files. Errors: those of writing files.
runtime::Status make_toy_model(const std::filesystem::path& folder, const ToyModelOptions& options);

/// The absolute path of the model that `key` (for example `actor_rollout_ref.model.path`) names. A
/// name org/name[@revision] that is no local path is fetched from the hub (rl/hub/hub.h). "toy" is
/// the toy model, made below `trainer.default_local_dir`; write "./toy" for a folder of that name.
/// Errors: kNotFound (no path given, or no such path), those of locate_model().
runtime::Result<std::filesystem::path> resolve_model(const Config& config, const std::string& key,
                                                     std::uint64_t seed);

/// As locate_model() for a model to run; logs that it is being fetched.
runtime::Result<std::filesystem::path> fetch_named_model(const std::string& name);

}  // namespace rl
