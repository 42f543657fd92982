// Detects divergence: consecutive steps without a finite gradient, after which no further step can
// repair the weights. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/result.h"

namespace rl {

/// Counts the consecutive steps without an update, since no gradient was finite.
class DivergenceDetector {
 public:
  static constexpr std::int64_t kStepsMax = 10;

  /// Call after every step. `updated`: some gradient of it was finite. `whose` names the weights in
  /// the error: "actor". kTaskFailed, with the cure, from the `kStepsMax`th consecutive step
  /// without an update on.
  runtime::Status observe(std::int64_t step, bool updated, const std::string& whose);

  /// Whether the last step had no update.
  bool diverging() const { return steps_without_update_ > 0; }

 private:
  std::int64_t steps_without_update_ = 0;
};

}  // namespace rl
