// On-policy distillation: what a policy learns from what a teacher says of the policy's own
// samples. Agarwal et al. 2023, arXiv:2306.13649; with the policy gradient as in Thinking Machines
// Lab, "On-Policy Distillation", 2025, https://thinkingmachines.ai/blog/on-policy-distillation/.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "rl/algo/aggregate.h"
#include "rl/algo/kl.h"
#include "rl/algo/policy_loss.h"
#include "rl/config/config.h"
#include "rl/metrics/metrics.h"
#include "rl/worker/objective_inputs.h"
#include "runtime/core/result.h"

namespace rl {

/// The divergence KL(policy || teacher), estimated at each token that the policy generated.
struct DistillationObjective {
  KlPenalty estimator;             // its value is a token's loss
  std::optional<double> loss_max;  // of a token's loss, either side of 0; nothing: no bound
  bool policy_gradient =
      false;  // minus the loss is the token's advantage; else the loss itself is gone back through
  ClipOptions clip{.low = 0.2, .high = 0.2, .dual = 3.0};  // of policy_gradient
  bool task_rewards = true;  // the policy's own objective is learned, too; else the teacher is all
                             // there is to learn from
  double coefficient = 1.0;  // of the divergence next to the policy's own objective

  /// From `distillation.*`; nothing where it is not enabled. kInvalidArgument, by key: a value out
  /// of range, or k1 without the policy gradient. Also a term of the policy's own objective that
  /// task_rewards=false would leave out.
  static runtime::Result<std::optional<DistillationObjective>> from_config(const Config& config);
};

/// The teacher's part of the loss, before the coefficient: these samples' part of the mini-batch's,
/// whose learned tokens are `tokens_total`; see policy_objective(). Adds distillation/... to
/// `metrics`, parts likewise.
at::Tensor teacher_loss(const DistillationObjective& objective, const ObjectiveInputs& inputs,
                        const Aggregation& aggregation, double tokens_total, Metrics& metrics);

}  // namespace rl
