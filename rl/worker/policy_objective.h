// The policy objective: one of the policy losses, an entropy bonus, a KL penalty to the reference,
// and the NLL of correct responses. Distillation from a teacher's log-probabilities joins them or
// takes their place.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "rl/algo/aggregate.h"
#include "rl/algo/custom_policy_loss.h"
#include "rl/algo/gated_loss.h"
#include "rl/algo/kl.h"
#include "rl/algo/policy_loss.h"
#include "rl/batch/batch_plan.h"
#include "rl/config/config.h"
#include "rl/metrics/metrics.h"
#include "rl/worker/covariant_tokens.h"
#include "rl/worker/disco.h"
#include "rl/worker/distillation_objective.h"
#include "rl/worker/objective_inputs.h"
#include "runtime/core/result.h"

namespace rl {

/// The policy loss, as verl's `policy_loss.loss_mode` names it.
enum class PolicyLossMode {
  kVanilla,  // "vanilla": PPO's clipped surrogate, with dual clip and clip-higher
  kGspo,     // "gspo": the same over the sequence's ratio, each sequence's tokens averaged
  kCispo,    // "cispo": clipped ratios as weights of log-probs
  kGeoMean,  // "geo_mean": GMPO, one clipped geometric mean ratio a sequence
  kGpg,      // "gpg": the policy gradient without ratio and clipping
  kClipCov,  // "clip_cov": the clipped surrogate without some of the tokens that drive entropy down
  kKlCov,    // "kl_cov": those tokens held near the old policy
  kSapo,     // "sapo": a gate that closes smoothly in place of a bound, each sequence's tokens
             // averaged
  kDppoTv,   // "dppo_tv": tokens that left a trust region of total variation have no gradient
  kDppoKl,   // "dppo_kl": the same by KL
  kDro,      // "dro": the policy gradient with a quadratic price for leaving the old policy
  kDisco,   // "disco": right responses above the wrong ones of their prompt, the wrong ones of high
            // scores first, and a bound on the KL
  kCustom,  // what register_policy_loss() has named
  kReinforce,  // the policy gradient weighted by truncated ratios: rollout_correction with
               // bypass_mode=true and loss_type=reinforce
};

struct PolicyObjective {
  PolicyLossMode mode = PolicyLossMode::kVanilla;
  ClipOptions clip;
  CovarianceOptions covariance;                    // of kClipCov and kKlCov
  SapoOptions sapo;                                // of kSapo
  double dro_beta = 0.0;                           // of kDro
  DiscoOptions disco;                              // of kDisco
  CustomPolicyLoss own;                            // of kCustom
  std::optional<ImportanceWeightOptions> weights;  // of kReinforce; nothing: every weight is 1
  AggregationMode aggregation = AggregationMode::kTokenMean;
  double horizon = 512;  // tokens that seq-mean-token-sum-norm divides by
  double entropy_coefficient = 0.0;
  bool use_kl_loss = false;
  double kl_coefficient = 0.001;
  KlPenalty kl_penalty;
  double positive_nll_coefficient =
      0.0;  // of the likelihood of responses that were right; VAPO, arXiv:2504.05118, section 3.3
  std::optional<DistillationObjective> distillation;  // nothing: there is no teacher

  /// From `actor_rollout_ref.actor.*` and `distillation.*`. kInvalidArgument: a value out of range,
  /// by key.
  static runtime::Result<PolicyObjective> from_config(const Config& config);

  /// Whether rewards are learned from; else a teacher is all there is.
  bool uses_rewards() const { return !distillation || distillation->task_rewards; }

  bool chooses_tokens() const {
    return uses_rewards() && (mode == PolicyLossMode::kClipCov || mode == PolicyLossMode::kKlCov);
  }
};

/// The loss of these samples as their part of the mini-batch's. Summed over micro-batches and
/// workers, losses and gradients are those of the whole, since every denominator is one of
/// `mini_batch`'s totals. Adds actor/... to `metrics`, parts likewise. Errors: those of
/// CustomPolicyLoss::loss().
runtime::Result<at::Tensor> policy_objective(const PolicyObjective& objective,
                                             const ObjectiveInputs& inputs,
                                             const MiniBatch& mini_batch, Metrics& metrics);

}  // namespace rl
