// Keys of a run's configuration that have changed since its checkpoint was written.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// In a checkpoint, and in a run's folder: the configuration, merged and resolved.
inline constexpr const char* kSavedConfigFile = "config.yaml";

struct ChangedKey {
  std::string key;
  std::string before;  // as YAML has it; "not set" where there was none
  std::string now;     // the same, with where it comes from

  std::string text() const { return key + ": " + before + " -> " + now; }
};

/// By key, without those that say how to resume. `checkpoint` is a global_step_N. The configuration
/// of one without (of an earlier version) may be in the run's folder. Otherwise nothing is known,
/// and nothing is returned.
std::vector<ChangedKey> changed_keys(const std::filesystem::path& checkpoint, const Config& now);

/// Reports them in the log, where there are some.
void tell_changed_keys(const std::filesystem::path& checkpoint, const Config& now);

}  // namespace rl
