#include "rl/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "rl/config/number_text.h"

namespace rl {
namespace {

// The fraction of the peak at `progress` in [0, 1] between the end of the warm-up and total_steps.
double decay(const LrScheduleOptions& options, double progress) {
  switch (options.kind) {
    case LrScheduleOptions::Kind::kConstant: return 1.0;
    case LrScheduleOptions::Kind::kLinear:
      return options.min_ratio + (1.0 - options.min_ratio) * (1.0 - progress);
    case LrScheduleOptions::Kind::kCosine:
      return options.min_ratio +
             (1.0 - options.min_ratio) * 0.5 *
                 (1.0 + std::cos(2.0 * std::numbers::pi * options.cycles * progress));
    case LrScheduleOptions::Kind::kWsd: {
      const double left =
          options.decay_ratio > 0 ? std::min(1.0, (1.0 - progress) / options.decay_ratio) : 1.0;
      return options.min_ratio + (1.0 - options.min_ratio) * left;
    }
  }
  return 1.0;
}

const char* name_of(LrScheduleOptions::Kind kind) {
  switch (kind) {
    case LrScheduleOptions::Kind::kConstant: return "constant";
    case LrScheduleOptions::Kind::kLinear: return "linear";
    case LrScheduleOptions::Kind::kCosine: return "cosine";
    case LrScheduleOptions::Kind::kWsd: return "wsd";
  }
  return "";
}

}  // namespace

double learning_rate(const LrScheduleOptions& options, std::int64_t step) {
  if (step < options.warmup_steps) {
    const double start = options.peak * options.start_ratio;
    return start + (options.peak - start) * static_cast<double>(step + 1) /
                       static_cast<double>(options.warmup_steps);
  }
  const std::int64_t decay_steps =
      std::max<std::int64_t>(1, options.total_steps - options.warmup_steps);
  const double progress =
      static_cast<double>(step - options.warmup_steps) / static_cast<double>(decay_steps);
  return options.peak * decay(options, std::clamp(progress, 0.0, 1.0));
}

runtime::Result<LrScheduleOptions::Kind> parse_lr_schedule(std::string_view name) {
  if (name == "constant") return LrScheduleOptions::Kind::kConstant;
  if (name == "linear") return LrScheduleOptions::Kind::kLinear;
  if (name == "cosine") return LrScheduleOptions::Kind::kCosine;
  if (name == "wsd") return LrScheduleOptions::Kind::kWsd;
  return runtime::invalid_argument("no learning-rate schedule '" + std::string(name) +
                                   "': use constant, linear, cosine or wsd");
}

std::string schedule_text(const LrScheduleOptions& options) {
  std::string text = number_text(options.peak);
  if (options.warmup_steps > 0)
    text += ", after a warm-up of " + std::to_string(options.warmup_steps) + " step(s)";
  text += std::string(", ") + name_of(options.kind);
  if (options.kind == LrScheduleOptions::Kind::kConstant) return text;
  text += " to " + number_text(options.peak * options.min_ratio);
  return options.total_steps < 1 ? text : text + " at step " + std::to_string(options.total_steps);
}

std::optional<std::string> schedule_note(const LrScheduleOptions& options, std::int64_t steps) {
  if (options.warmup_steps <= steps) return std::nullopt;
  return "lr_warmup_steps=" + std::to_string(options.warmup_steps) + ": the run has " +
         std::to_string(steps) + " steps, and its learning rate never gets to its peak";
}

}  // namespace rl
