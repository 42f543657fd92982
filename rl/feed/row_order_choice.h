// The choice of the next rows, where it is neither the data's order nor shuffling.
#pragma once

#include <optional>

#include "rl/config/config.h"
#include "rl/data/adaptive_order.h"
#include "rl/data/python_sampler.h"
#include "runtime/core/result.h"

namespace rl {

/// Ways to draw prompts before it is known what became of the rows before.
struct EarlyDraws {
  bool filters_groups = false;
  bool has_rollout_workers = false;
  bool is_partial = false;
};

/// One of them, or none.
struct RowOrderChoice {
  std::optional<AdaptiveOrderOptions> adaptive;
  PythonSampler python_sampler;

  /// From `data.adarft.*` and `data.sampler.*`. kInvalidArgument: both, or one with
  /// data.train_weights; kUnimplemented: with a way to draw that does not wait for the scores of
  /// the rows before.
  static runtime::Result<RowOrderChoice> from_config(const Config& config, const EarlyDraws& draws);
};

}  // namespace rl
