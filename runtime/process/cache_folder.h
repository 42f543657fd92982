// The folder of a node's fetched programs and files of jobs.
#pragma once

#include <filesystem>

#include "runtime/core/result.h"

namespace runtime {

/// $STARLING_CACHE, $XDG_CACHE_HOME/starling, or ~/.cache/starling; of root, whose home no other
/// user may enter, /var/lib/starling. Never a folder that other users share. Errors: kNotFound (no
/// home), kInvalidArgument (it is another user's, or others can write to it).
Result<std::filesystem::path> cache_folder();

/// The mark in a folder of the cache: what it has besides the mark is a node's, and may be removed.
inline constexpr const char* kCacheMark = ".starling-cache";

/// Makes a folder of the cache with its mark, and the folders above it. One that is there has to
/// have this user's mark, or to be empty; its mode is never changed. Errors: those of
/// cache_folder(); kInvalidArgument (something of the user's is in it), with the cure.
Status make_cache_folder(const std::filesystem::path& folder);

/// Ok for a folder that make_cache_folder() has marked. Errors: the same; kNotFound (not there, or
/// empty and not marked yet).
Status check_cache_folder(const std::filesystem::path& folder);

/// Makes a folder in a marked one. Errors: those of cache_folder().
Status make_folder_in_cache(const std::filesystem::path& folder);

}  // namespace runtime
