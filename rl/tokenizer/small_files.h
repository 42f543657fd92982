// Reading the small files of a model folder, any of which may be missing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "runtime/core/result.h"

namespace rl {

/// The file's text, or an empty optional when there is no such file. kInvalidArgument: longer than
/// a config ever is.
runtime::Result<std::optional<std::string>> read_optional_text(const std::filesystem::path& path);

/// Its JSON object; null when there is no such file. Errors name the file: kInvalidArgument (not a
/// JSON object).
runtime::Result<nlohmann::json> read_optional_json(const std::filesystem::path& path);

/// The same, with the keys in the file's order.
runtime::Result<nlohmann::ordered_json> read_optional_ordered_json(
    const std::filesystem::path& path);

}  // namespace rl
