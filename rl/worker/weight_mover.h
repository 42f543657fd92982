// The weights' way from what learns them to what generates with them.
#pragma once

#include "rl/model/offload.h"
#include "rl/optim/learner.h"

namespace rl {

/// What a PolicyGenerator asks for the weights that its engine reads. One thread at a time.
class WeightMover {
 public:
  virtual ~WeightMover() = default;

  /// Brings the weights of now to where the engine reads them; they stay while the result lives.
  [[nodiscard]] virtual Offload::Stay bring() = 0;
};

/// Learner and engine share one model: weights only come back from where they were offloaded to.
/// Borrows the learner.
class SharedWeights : public WeightMover {
 public:
  explicit SharedWeights(const Learner& learner) : learner_(learner) {}

  Offload::Stay bring() override { return learner_.stay(); }

 private:
  const Learner& learner_;
};

}  // namespace rl
