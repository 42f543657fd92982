// AdaRFT: the rows whose difficulty is nearest to a target, which moves with the scores; Shi et al.
// 2025, arXiv:2504.05520, algorithm 1.
#pragma once

#include <memory>
#include <optional>

#include "rl/config/config.h"
#include "rl/data/dataset.h"
#include "rl/data/row_order.h"

namespace rl {

/// Defaults are the paper's, for difficulties from 0 to 100.
struct AdaptiveOrderOptions {
  double beta = 0.5;            // the mean score that is aimed at
  double alpha = 2.0;           // how steeply the target follows the score
  double eta = 50.0;            // how far it moves at most in a step, in units of difficulty
  double difficulty_min = 0.0;  // where it begins, and what it stays above
  double difficulty_max = 100.0;
  bool shuffle =
      true;  // among rows as far from the target, by seed and step; else the first of them
  std::uint64_t seed = 0;

  /// From `data.adarft.*`; nothing unless it is enabled. kInvalidArgument: a value out of range, by
  /// key.
  static runtime::Result<std::optional<AdaptiveOrderOptions>> from_config(const Config& config);
};

/// The target after a step of that mean score: target + eta * tanh(alpha * (score - beta)), within
/// the bounds.
double next_target(double target, double mean_score, const AdaptiveOrderOptions& options);

/// Reads every row's difficulty once. An epoch is as many rows as there are; a row comes as often
/// as it is near. kInvalidArgument: a row without a `difficulty`.
runtime::Result<std::unique_ptr<RowOrder>> make_adaptive_order(const Dataset& dataset,
                                                               const AdaptiveOrderOptions& options);

}  // namespace rl
