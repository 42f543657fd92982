// The place of a model in a run's folders.
#pragma once

#include <filesystem>
#include <optional>

#include "runtime/core/result.h"

namespace rl {

/// The newest checkpoint of a run's folder; of a global_step_N, or a model's or adapter's folder,
/// the folder itself. A checkpoint's files are verified. kNotFound: no such folder; and the errors
/// of verify_checkpoint.
runtime::Result<std::filesystem::path> find_checkpoint(const std::filesystem::path& checkpoint);

/// The folder below it with config.json, or with adapter_config.json; nullopt: there is none.
std::optional<std::filesystem::path> model_in_checkpoint(const std::filesystem::path& checkpoint);
std::optional<std::filesystem::path> adapter_in_checkpoint(const std::filesystem::path& checkpoint);

}  // namespace rl
