// The weights' way from what learns them to what generates with them.
#pragma once

#include <utility>

#include "rl/model/offload.h"
#include "rl/optim/learner.h"
#include "runtime/core/result.h"

namespace rl {

/// What a PolicyGenerator asks for the weights that its engine reads. One thread at a time.
class WeightMover {
 public:
  virtual ~WeightMover() = default;

  /// Weights that were brought, while it lives.
  struct Brought {
    Offload::Stay stay;
    Learner::Gathered gathered;
  };

  /// Brings the weights of now to where the engine reads them. Errors: see Learner::gathered.
  virtual runtime::Result<Brought> bring() = 0;
};

/// Learner and engine share one model. Weights only come back from where they were offloaded to, or
/// from the other ranks that keep parts of them. Borrows the learner.
class SharedWeights : public WeightMover {
 public:
  explicit SharedWeights(Learner& learner) : learner_(learner) {}

  runtime::Result<Brought> bring() override {
    Offload::Stay stay = learner_.stay();
    runtime::Result<Learner::Gathered> gathered = learner_.gathered();
    if (!gathered.ok()) return gathered.status();
    return Brought{std::move(stay), *std::move(gathered)};
  }

 private:
  Learner& learner_;
};

}  // namespace rl
