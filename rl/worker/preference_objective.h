// The objective of preference training: its loss and its metrics. Pure functions of log-probs; the
// formulas are in rl/algo/preference.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>

#include "rl/algo/preference.h"
#include "rl/config/config.h"
#include "rl/metrics/metrics.h"
#include "runtime/core/result.h"

namespace rl {

enum class PreferenceLossKind { kSigmoid, kIpo, kHinge, kSppo, kOrpo, kSimpo, kKto, kBradleyTerry };

/// The model that `preference.reference_path` names is the reference, where one is given.
inline constexpr const char* kReferencePath = "preference.reference_path";

struct PreferenceObjective {
  PreferenceLossKind loss = PreferenceLossKind::kSigmoid;
  double beta = 0.1;
  double label_smoothing = 0.0;   // kSigmoid, kSimpo
  bool average_logprobs = false;  // kSigmoid, kIpo, kHinge, kSppo: log-ratios are means over a
                                  // response's tokens instead of sums
  double simpo_gamma = 1.0;       // in units of reward
  double sft_weight = 0.0;     // of the chosen response's negative log-likelihood, a mean over its
                               // tokens, next to the DPO family's loss
  double wanted_weight = 1.0;  // kKto
  double unwanted_weight = 1.0;
  bool use_margin = false;  // kBradleyTerry: the chosen response is to lead by the data's margin
  double center_coefficient = 0.0;  // kBradleyTerry: keeps rewards around 0

  bool is_pairs() const { return loss != PreferenceLossKind::kKto; }
  bool is_reward_model() const { return loss == PreferenceLossKind::kBradleyTerry; }
  bool needs_reference() const {
    return !is_reward_model() && loss != PreferenceLossKind::kOrpo &&
           loss != PreferenceLossKind::kSimpo;
  }

  /// From `preference.*`. kInvalidArgument: a value out of range, or settings that do not go
  /// together, by key.
  static runtime::Result<PreferenceObjective> from_config(const Config& config);
};

/// Over all workers and, in validation, all rows: what sums are divided by.
struct PreferenceTotals {
  std::int64_t rows = 0;
  std::int64_t wanted = 0;  // of single responses

  auto fields() { return std::tie(rows, wanted); }
};

/// Log-probs of both responses of P pairs, summed over their tokens, with how many those are, [P].
struct PairInputs {
  PairLogprobs policy;
  PairLogprobs reference;  // undefined where none is needed
  PairLogprobs tokens;
};

/// The pairs' part of the mean loss over totals.rows. Adds their parts of loss, rewards/*, logps/*
/// to `metrics`.
at::Tensor pair_objective(const PreferenceObjective& objective, const PairInputs& inputs,
                          const PreferenceTotals& totals, Metrics& metrics);

/// Of single responses: `wanted_P` is 1 or 0; `divergence` the estimate over all rows, at least 0.
struct SingleInputs {
  at::Tensor policy_P;
  at::Tensor reference_P;
  at::Tensor wanted_P;
  double divergence = 0.0;
};

at::Tensor single_objective(const PreferenceObjective& objective, const SingleInputs& inputs,
                            const PreferenceTotals& totals, Metrics& metrics);

/// Of a reward model's scores, [P]. Adds loss, accuracy, margin, mean_reward.
at::Tensor reward_objective(const PreferenceObjective& objective, const at::Tensor& chosen_P,
                            const at::Tensor& rejected_P, const at::Tensor& margin_P,
                            const PreferenceTotals& totals, Metrics& metrics);

}  // namespace rl
