// Which rows come next, where neither the data's order nor shuffling says so.
#pragma once

#include <optional>

#include "rl/config/config.h"
#include "rl/data/adaptive_order.h"
#include "rl/data/python_sampler.h"
#include "rl/train/trainer_options.h"
#include "runtime/core/result.h"

namespace rl {

/// One of them, or none.
struct RowOrderChoice {
  std::optional<AdaptiveOrderOptions> adaptive;
  PythonSampler python_sampler;

  /// From `data.adarft.*` and `data.sampler.*`. kInvalidArgument: both, or one beside
  /// data.train_weights; kUnimplemented: beside a way to draw that does not wait for the scores of
  /// the rows before.
  static runtime::Result<RowOrderChoice> from_config(const Config& config,
                                                     const TrainerOptions& trainer);
};

}  // namespace rl
