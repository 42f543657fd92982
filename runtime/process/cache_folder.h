// Where a node keeps what it fetches: programs, and files of jobs.
#pragma once

#include <filesystem>

#include "runtime/core/result.h"

namespace runtime {

/// $STARLING_CACHE, $XDG_CACHE_HOME/starling, or ~/.cache/starling; of root, whose home nobody else
/// may enter, /var/lib/starling. Never a folder that other users share. Errors: kNotFound (no
/// home), kInvalidArgument (it is another user's, or others can write to it).
Result<std::filesystem::path> cache_folder();

/// Makes a folder below the cache, and those above it. Errors: those of cache_folder().
Status make_cache_folder(const std::filesystem::path& folder);

}  // namespace runtime
