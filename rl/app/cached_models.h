// The models of a configuration for a dry run, which fetches nothing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// A configuration whose models on the hub are paths where the cache has them.
struct CachedModels {
  Config config;
  std::vector<std::string> missing = {};  // keys of models that a run would fetch
  std::vector<std::string> notes = {};    // on them, for people
  // In place of notes where nothing is fetched (HF_HUB_OFFLINE), so that a run would end.
  std::vector<std::string> unreachable = {};

  bool lacks(const std::string& key) const;
  /// Of `unreachable`, if there are some.
  runtime::Status check() const;
};

/// Of the models that `keys` name, and of reward models. A path that is not there stays as it is.
/// So does a key that is not set or that the command does not have.
CachedModels find_cached_models(const Config& config, std::span<const std::string> keys);

}  // namespace rl
