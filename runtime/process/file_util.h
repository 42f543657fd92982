// Files: small ones read whole with a limit and written atomically; large ones read block by block;
// the files of a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"

namespace runtime {

/// Errors: kNotFound; kInvalidArgument (not a file, unreadable, larger than `bytes_max`).
Result<std::string> read_file(const std::filesystem::path& file, std::size_t bytes_max);

/// Reads a file of any size, calling `take` with one block after another. Errors: kNotFound,
/// kInvalidArgument (unreadable).
Status read_blocks(const std::filesystem::path& file,
                   const std::function<void(std::string_view)>& take);

struct FolderFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::int64_t written_ns = 0;  // since 1970
  std::int64_t used_ns = 0;     // written or read, whichever was later
};

/// The files in a folder and its subfolders down to `depth`; no links or special files.
std::vector<FolderFile> files_in(const std::filesystem::path& folder, int depth = 1);

/// Writes a temporary file with `mode` next to `file` and renames it over `file`. Errors:
/// kResourceExhausted (disk full), others.
Status write_file_atomic(const std::filesystem::path& file, std::string_view content,
                         unsigned mode);
/// The same, synced to disk: the file survives a power failure.
Status write_file_durably(const std::filesystem::path& file, std::string_view content,
                          unsigned mode);

}  // namespace runtime
