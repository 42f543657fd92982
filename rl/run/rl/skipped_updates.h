// SkippedUpdates: counts updates without a finite gradient, and detects divergence by them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "rl/metrics/metrics.h"
#include "rl/run/divergence_detector.h"
#include "runtime/core/result.h"

namespace rl {

class SkippedUpdates {
 public:
  struct Seen {
    bool diverging = false;         // the last step had no update of a role
    runtime::Status diverged = {};  // why no checkpoint of these weights is useful
  };

  /// `passes`: by role, the number of passes over a step's mini-batches.
  explicit SkippedUpdates(std::map<std::string, std::int64_t> passes)
      : passes_(std::move(passes)) {}

  /// Call after a step of N mini-batches. Logs a warning for each role with skipped updates.
  Seen observe(const Metrics& metrics, std::int64_t mini_batches, std::int64_t step);

  void reset() { detectors_.clear(); }

 private:
  std::map<std::string, std::int64_t> passes_;
  std::map<std::string, DivergenceDetector> detectors_;  // by role
};

}  // namespace rl
