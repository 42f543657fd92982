// Files: small ones whole, read with a limit and written so that a reader never sees half; large
// ones block by block; folders that are kept within bounds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace runtime {

/// Errors: kNotFound; kInvalidArgument (no file, unreadable, larger than `bytes_max`).
Result<std::string> read_file(const std::filesystem::path& file, std::size_t bytes_max);

/// Reads it all, however large, calling `take` with one block after another. Errors: kNotFound,
/// kInvalidArgument (unreadable).
Status read_blocks(const std::filesystem::path& file,
                   const std::function<void(std::string_view)>& take);

/// Removes files of the folder, those first that were written longest ago, until it has `bytes_max`
/// at most. Not those that `keeps` names (empty: none).
void remove_oldest(const std::filesystem::path& folder, std::uint64_t bytes_max,
                   const std::function<bool(const std::filesystem::path&)>& keeps = {});

/// Writes a temporary file with `mode` beside `file` and renames it over it. Errors:
/// kResourceExhausted (disk full), others.
Status write_file_atomic(const std::filesystem::path& file, std::string_view content,
                         unsigned mode);

}  // namespace runtime
