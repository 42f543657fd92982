// ObjectiveInputs: the tensors that objectives of a policy are computed from.
#pragma once

#include <ATen/core/Tensor.h>

namespace rl {

/// Some samples of a mini-batch. Shapes: B samples, T tokens of the longest response; what stands
/// where mask_BT is 0 never matters.
struct ObjectiveInputs {
  at::Tensor logprobs_BT;      // of the policy, with graph
  at::Tensor entropy_BT;       // of the policy, with graph
  at::Tensor old_logprobs_BT;  // of the policy that generated the samples
  at::Tensor reference_BT;     // log-probs; undefined without a KL loss
  at::Tensor advantages_BT;
  at::Tensor mask_BT;
  /// 1 on the tokens of covariant_tokens(); undefined but for kClipCov and kKlCov.
  at::Tensor chosen_BT = {};
  at::Tensor weights_B = {};   // DiscoWeights::of_samples; undefined but for kDisco
  double kl_weight = 0.0;      // DiscoWeights::kl; of kDisco
  at::Tensor repeats_B = {};   // how often each sample counts; see UpdatePlan
  at::Tensor positive_B = {};  // 1 where the response is correct
  at::Tensor teacher_BT = {};  // log-probs; undefined without a teacher
};

}  // namespace rl
