// SkippedUpdates: counts updates without a finite gradient, and finds lost weights by them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "rl/metrics/metrics.h"
#include "rl/run/lost_weights.h"
#include "runtime/core/result.h"

namespace rl {

class SkippedUpdates {
 public:
  struct Seen {
    bool losing = false;        // the last step took no update of a role
    runtime::Status lost = {};  // why no checkpoint of these weights is useful
  };

  /// `passes`: by role, over a step's mini-batches.
  explicit SkippedUpdates(std::map<std::string, std::int64_t> passes)
      : passes_(std::move(passes)) {}

  /// After a step of N mini-batches. Warns of each role's.
  Seen observe(const Metrics& metrics, std::int64_t mini_batches, std::int64_t step);

  void reset() { lost_weights_.clear(); }

 private:
  std::map<std::string, std::int64_t> passes_;
  std::map<std::string, LostWeights> lost_weights_;  // by role
};

}  // namespace rl
