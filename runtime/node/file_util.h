// Small files, whole: reading with a limit, writing so that a reader never sees half.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/core/result.h"

namespace runtime {

/// Errors: kNotFound; kInvalidArgument (no file, unreadable, larger than `bytes_max`).
Result<std::string> read_file(const std::filesystem::path& file, std::size_t bytes_max);

/// Writes a temporary file with `mode` beside `file` and renames it over it. Errors: kResourceExhausted (disk full), others.
Status write_file_atomic(const std::filesystem::path& file, std::string_view content, unsigned mode);

/// Makes the folder, for the user only (0700), and checks that it is a real folder of the user's own: a name under /tmp could
/// have been made by somebody else. Errors: kInvalidArgument.
Status make_private_folder(const std::filesystem::path& folder);

}  // namespace runtime
