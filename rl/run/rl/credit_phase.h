// CreditPhase: from a step's scores to the credit of its samples.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "rl/run/rl/credit_assigner.h"
#include "rl/run/rl/reward_shaper.h"
#include "rl/run/rl/sample_uses.h"

namespace rl {

class CreditPhase {
 public:
  CreditPhase(SampleUseOptions use, RewardShaper shaper, std::unique_ptr<CreditAssigner> assigner)
      : use_(std::move(use)), shaper_(std::move(shaper)), assigner_(std::move(assigner)) {}

  runtime::Result<Credit> assign(StepBatch& batch, std::int64_t step, StepTimer& timer) {
    Credit credit{.use = sample_uses(batch, use_, step)};
    const runtime::Result<double> kl_coefficient = shaper_.shape(batch, credit.metrics);
    if (!kl_coefficient.ok()) return kl_coefficient.status();
    const runtime::Status assigned = assigner_->assign(batch, *kl_coefficient, credit, timer);
    if (!assigned.ok()) return assigned;
    return credit;
  }

  // The parts with a state.
  RewardShaper& shaper() { return shaper_; }
  CreditAssigner& assigner() { return *assigner_; }

 private:
  SampleUseOptions use_;
  RewardShaper shaper_;
  std::unique_ptr<CreditAssigner> assigner_;
};

}  // namespace rl
