// A tiny model made on the spot, for the toy tasks: it trains within a minute on one core.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// The name that stands for the toy model in `actor_rollout_ref.model.path`, as `toy` does for data
/// in `data.dataset_name`.
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
/// character. Equal options give equal files. Errors: as the files say.
runtime::Status make_toy_model(const std::filesystem::path& folder, const ToyModelOptions& options);

/// The model that `key` (`actor_rollout_ref.model.path`, say) names as an absolute path; what is
/// none here and is called org/name[@revision] is fetched from the hub (rl/hub/hub.h). "toy" is a
/// toy model, made below `trainer.default_local_dir`; a folder of that name is written "./toy".
/// kNotFound: no path given, or nothing there; and the errors of locate_model.
runtime::Result<std::filesystem::path> resolve_model(const Config& config, const std::string& key,
                                                     std::uint64_t seed);

/// As locate_model for a model to compute with, told in the log while it is fetched.
runtime::Result<std::filesystem::path> fetch_named_model(const std::string& name);

}  // namespace rl
