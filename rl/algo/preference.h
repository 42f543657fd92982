// Losses on preferences: pairs of a chosen and a rejected response, or single responses marked as
// wanted or not. Shapes: P pairs (or responses), fp32. Log-probs are of whole responses: sums over
// their tokens, in nats. References are constants.
#pragma once

#include <ATen/core/Tensor.h>

namespace rl {

/// Log-probs of both responses of each pair, [P].
struct PairLogprobs {
  at::Tensor chosen_P;
  at::Tensor rejected_P;
};

enum class DpoLoss {
  kSigmoid,  // Rafailov et al. 2023, arXiv:2305.18290, equation 7
  kIpo,      // Azar et al. 2023, arXiv:2310.12036, equation 17
  kHinge,    // Zhao et al. 2023, arXiv:2305.10425 (SLiC)
  kSppo,     // SPPO where the chosen response wins for certain: each log-ratio is drawn to +-1/(2
             // beta); Wu et al. 2024, arXiv:2405.00675, equation 4.7
};

struct DpoOptions {
  double beta = 0.1;  // strength of the pull towards the reference, above 0
  DpoLoss loss = DpoLoss::kSigmoid;
  double label_smoothing =
      0.0;  // probability that a pair is labelled the wrong way round, below 0.5; kSigmoid only
};

struct PreferenceLoss {
  at::Tensor loss_P;
  at::Tensor rewards_chosen_P;  // implicit rewards beta * log(pi / ref), without gradient
  at::Tensor rewards_rejected_P;
};

PreferenceLoss dpo_loss(const PairLogprobs& policy, const PairLogprobs& reference,
                        const DpoOptions& options);

/// ORPO's loss without a reference: -log pi(chosen) - weight * log sigmoid(log odds ratio), [P].
/// Log-probs are means over the response's tokens (in nats, below 0), so that odds are those of a
/// token. Hong et al. 2024, arXiv:2403.07691, equation 6.
at::Tensor orpo_loss(const PairLogprobs& mean_logprobs, double weight);

struct SimpoOptions {
  double beta = 2.0;
  double gamma = 1.0;  // by how much the chosen response is to lead, in units of reward: beta times
                       // the mean log-prob
  double label_smoothing = 0.0;  // as in DpoOptions
};

/// SimPO: DPO's loss on means over tokens, with a margin and without a reference, [P]; Meng et al.
/// 2024, arXiv:2405.14734, equation 6.
at::Tensor simpo_loss(const PairLogprobs& mean_logprobs, const SimpoOptions& options);

struct KtoOptions {
  double beta = 0.1;
  double weight = 1.0;  // lambda_D for wanted, lambda_U for unwanted responses
};

/// KTO: weight * (1 - sigmoid(beta (r - kl))) for wanted responses, weight * (1 - sigmoid(beta (kl
/// - r))) for unwanted ones. Here r = log(pi / ref), and `kl` is the batch's estimate of the
/// divergence (a scalar constant, at least 0). Returns [P]. Ethayarajh et al. 2024,
/// arXiv:2402.01306, equation 8.
at::Tensor kto_loss(const at::Tensor& policy_P, const at::Tensor& reference_P, const at::Tensor& kl,
                    bool wanted, const KtoOptions& options);

/// Bradley-Terry loss of a reward model: -log sigmoid(chosen - rejected - margin), [P]. Ouyang et
/// al. 2022, arXiv:2203.02155, equation 1; the margin as in Llama 2, arXiv:2307.09288, equation 2.
at::Tensor bradley_terry_loss(const at::Tensor& chosen_P, const at::Tensor& rejected_P,
                              double margin = 0.0);
/// The same loss with a margin for each pair, [P].
at::Tensor bradley_terry_loss(const at::Tensor& chosen_P, const at::Tensor& rejected_P,
                              const at::Tensor& margin_P);

}  // namespace rl
