// Durable names of files.
#pragma once

#include <filesystem>
#include <system_error>

namespace runtime {

/// Has the names of the files in a folder survive a loss of power: a new file's, a rename.
/// Some file systems cannot sync a folder, which is no error: the files themselves are safe.
std::error_code sync_folder(const std::filesystem::path& folder);

}  // namespace runtime
