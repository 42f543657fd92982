// A part of a reward, and what makes the parts that a library above this one has.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "rl/reward/scorer.h"
#include "runtime/core/result.h"

namespace rl {

using ScorerResult = runtime::Result<std::unique_ptr<Scorer>>;

struct WeightedScorer {
  std::string name;
  double weight = 1.0;
  std::unique_ptr<Scorer> scorer;  // null where it was not started
};

/// Makes the scorer of a reward model. Without `start` the weights are not read, and only
/// check_row() may be called.
using RewardModelLoader =
    std::function<ScorerResult(const std::filesystem::path& model, bool start)>;

}  // namespace rl
