// Detects a model that is lost: once no batch has a finite gradient any more, nothing mends its
// weights. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/result.h"

namespace rl {

/// Counts the steps in a row of which no update was taken, since no gradient was finite.
class LostWeights {
 public:
  static constexpr std::int64_t kStepsMax = 10;

  /// After every step. `whose` names the weights in the error: "actor". kTaskFailed from the
  /// `kStepsMax`th such step in a row on, with the cure.
  runtime::Status observe(std::int64_t step, bool nothing_taken, const std::string& whose);

  /// Whether the last step took no update.
  bool losing() const { return steps_in_a_row_ > 0; }

 private:
  std::int64_t steps_in_a_row_ = 0;
};

}  // namespace rl
