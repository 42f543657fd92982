// Folders and files of one user alone. Readers check as much as writers: a name in a
// shared folder, as the temporary one, may have been made by another user.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/core/result.h"

namespace runtime {

/// Makes the folder (0700) if it is not there; its parent is. One that is there has to be private;
/// it is never changed. Errors: those of check_private_folder(), and what making it can say.
Status make_private_folder(const std::filesystem::path& folder);

/// Ok for a folder, not a link, that belongs to this user and that other users cannot enter.
/// Errors: kNotFound; kInvalidArgument, with the cure.
Status check_private_folder(const std::filesystem::path& folder);

/// The file's content. Errors: kNotFound; kInvalidArgument (a link, no file, another user's, one
/// that others can write, larger than `bytes_max`).
Result<std::string> read_private_file(const std::filesystem::path& file, std::size_t bytes_max);

/// The same for a folder of things to run or to ship: other users may read it, not write it.
Status check_unshared_folder(const std::filesystem::path& folder);

/// The home of this process's user: $HOME, else what the system's user database says. Errors:
/// kNotFound, with the variable that names a folder instead.
Result<std::filesystem::path> home_folder(const char* instead);

}  // namespace runtime
