// Files: small ones whole, read with a limit and written so that a reader never sees half; large
// ones block by block; what is in a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"

namespace runtime {

/// Errors: kNotFound; kInvalidArgument (no file, unreadable, larger than `bytes_max`).
Result<std::string> read_file(const std::filesystem::path& file, std::size_t bytes_max);

/// Reads it all, however large, calling `take` with one block after another. Errors: kNotFound,
/// kInvalidArgument (unreadable).
Status read_blocks(const std::filesystem::path& file,
                   const std::function<void(std::string_view)>& take);

struct FolderFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::int64_t written_ns = 0;  // since 1970
  std::int64_t used_ns = 0;     // written or read, whichever was later
};

/// The files in a folder, and in those in it down to `depth`; neither links nor anything else.
std::vector<FolderFile> files_in(const std::filesystem::path& folder, int depth = 1);

/// Writes a temporary file with `mode` beside `file` and renames it over it. Errors:
/// kResourceExhausted (disk full), others.
Status write_file_atomic(const std::filesystem::path& file, std::string_view content,
                         unsigned mode);
/// The same, and it is there after the machine has lost power.
Status write_file_durably(const std::filesystem::path& file, std::string_view content,
                          unsigned mode);

}  // namespace runtime
