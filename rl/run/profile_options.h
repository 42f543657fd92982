// The steps and the processes that are profiled.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

struct ProfileOptions {
  std::set<std::int64_t> steps;      // from 1
  bool continuous = false;           // steps that follow each other are one profile
  std::filesystem::path folder;      // of the traces
  std::int64_t spans_max = 300'000;  // of one trace, over all processes: about 30 MB
  std::map<std::string, std::set<std::int64_t>, std::less<>>
      ranks;  // by role, where only some are wanted; of other roles all are

  bool wants(std::int64_t step) const { return steps.contains(step); }
  bool wants(const std::string& role, std::int64_t rank) const {
    const auto named = ranks.find(role);
    return named == ranks.end() || named->second.contains(rank);
  }

  /// Of `starling train`; `run_folder` is where the run writes. kInvalidArgument: steps that are no
  /// positive integers, by key.
  static runtime::Result<ProfileOptions> from_config(const Config& config,
                                                     const std::filesystem::path& run_folder);
};

}  // namespace rl
