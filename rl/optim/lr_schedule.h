// Learning-rate schedules as pure functions of the step, so that resuming one needs nothing but the
// step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace rl {

/// Warm-up from `peak * start_ratio` to `peak` over `warmup_steps`, then the shape of `kind` down
/// to `peak * min_ratio` at `total_steps`.
struct LrScheduleOptions {
  enum class Kind { kConstant, kLinear, kCosine, kWsd };

  Kind kind = Kind::kConstant;
  double peak = 1e-6;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;  // where the decay ends; kConstant ignores it
  double min_ratio = 0.0;        // in [0, 1]
  double start_ratio = 0.0;      // in [0, 1]: where a warm-up begins
  double cycles =
      0.5;  // kCosine: waves between the end of the warm-up and total_steps; a half goes down once
  double decay_ratio = 0.1;  // kWsd (warm-up, stable, decay; Hu et al. 2024, arXiv:2404.06395): the
                             // last part of what follows the warm-up, going down in a line

  bool operator==(const LrScheduleOptions&) const = default;
};

/// The rate of update number `step`, counted from 0. Update 0 of a warm-up takes its first part,
/// peak / warmup_steps, rather than nothing at all.
double learning_rate(const LrScheduleOptions& options, std::int64_t step);

/// For people: "1e-05, after a warm-up of 3 steps, cosine to 1e-06 at step 90". The last step is
/// left out where total_steps is not known (below 1).
std::string schedule_text(const LrScheduleOptions& options);

/// What a user may not have meant in a run of N steps; nothing: nothing is odd.
std::optional<std::string> schedule_note(const LrScheduleOptions& options, std::int64_t steps);

/// "constant", "linear", "cosine", "wsd". kInvalidArgument: another name.
runtime::Result<LrScheduleOptions::Kind> parse_lr_schedule(std::string_view name);

}  // namespace rl
