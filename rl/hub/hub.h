// Models by name: "org/name" or "name" is fetched from the hub into Hugging Face's cache, a path is
// a path.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "rl/hub/hub_cache.h"
#include "rl/hub/hub_options.h"
#include "rl/hub/needed_files.h"
#include "runtime/core/result.h"

namespace rl {

/// The path of what a user calls a model. It is `model` itself where that exists here. Where
/// `model` is a name on the hub, it is what fetch_model gives. `revision` is for the hub only;
/// empty: the one in the name, or "main". kNotFound: neither; and the errors of fetch_model. Blocks
/// for as long as a download takes.
runtime::Result<std::filesystem::path> locate_model(const std::string& model,
                                                    std::string_view revision, HubNeed need,
                                                    const HubOptions& options);

/// The same of what is here already, as a path or in the cache: nothing is fetched. kNotFound: it
/// is not, or lacks files.
runtime::Result<std::filesystem::path> locate_cached_model(const std::string& model, HubNeed need,
                                                           const HubOptions& options);

/// The folder in the cache that holds the needed files of one commit, or the path of its only .gguf
/// file. Files that are not there yet are fetched. Without a network (or offline) it is the one
/// that the cache has, if it is whole. A commit given by its hash and whole costs no request.
/// kNotFound: no such model or revision, or offline and not in the cache, with the files that are
/// missing. kInvalidArgument: private or gated, with the cure. kResourceExhausted: the disk is
/// full. kUnavailable: the hub cannot be reached; what was fetched stays for the next time.
runtime::Result<std::filesystem::path> fetch_model(const HubName& name, HubNeed need,
                                                   const HubOptions& options);

}  // namespace rl
