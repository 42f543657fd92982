// ScorerFactory: scorers from the keys of `reward.*`, all with the limits of one run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "rl/config/config.h"
#include "rl/reward/process_scorer.h"
#include "rl/reward/scorer.h"
#include "rl/reward/weighted_scorer.h"
#include "runtime/core/result.h"

namespace rl {

/// A value that borrows the configuration and the loader. Errors name the key.
class ScorerFactory {
 public:
  /// For one of `workers`, which share the scoring processes. Without `start` only what can be
  /// known from the configuration is checked, and what would need a process or a server is null.
  static runtime::Result<ScorerFactory> from_config(const Config& config, std::int64_t workers,
                                                    bool start,
                                                    const RewardModelLoader& load_model);

  /// A rule by name; empty or "data_source": by each row's data source. `key` has `options`.
  ScorerResult rule(const std::string& name, const nlohmann::ordered_json& options,
                    const std::string& key) const;
  ScorerResult python(const std::string& file, const std::string& function,
                      const nlohmann::ordered_json& kwargs) const;
  ScorerResult library(const std::string& file) const;
  ScorerResult http(const std::string& url) const;
  ScorerResult model(const std::string& folder) const;

  /// The list reward.mixture.
  runtime::Result<std::vector<WeightedScorer>> mixture(const nlohmann::ordered_json& entries) const;

 private:
  ScorerFactory(const Config& config, bool start, const RewardModelLoader& load_model)
      : config_(config), start_(start), load_model_(load_model) {}

  ScorerResult by_data_source() const;
  runtime::Result<WeightedScorer> part(const nlohmann::ordered_json& entry,
                                       std::size_t index) const;

  const Config& config_;
  bool start_;
  const RewardModelLoader& load_model_;
  ScoringLimits limits_;
  std::size_t workers_ = 1;  // that share what may run at once
};

}  // namespace rl
