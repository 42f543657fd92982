// From one loss per token to one loss per step.
// Shapes: B sequences, T tokens; masks as in masked.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

#include "runtime/core/result.h"

namespace rl {

/// What a token's loss is divided by. Names as in verl's `loss_agg_mode`.
enum class AggregationMode {
  kTokenMean,  // "token-mean": all tokens of the batch weigh the same; DAPO, arXiv:2503.14476,
               // section 3.3
  kTokenSum,   // "token-sum"
  kSeqMeanTokenSum,      // "seq-mean-token-sum": long sequences weigh more
  kSeqMeanTokenSumNorm,  // "seq-mean-token-sum-norm": the same over a fixed length; Dr.GRPO,
                         // arXiv:2503.20783, section 3.2
  kSeqMeanTokenMean,     // "seq-mean-token-mean": all sequences weigh the same; GRPO,
                         // arXiv:2402.03300, equation 3
};

/// kInvalidArgument names the five.
runtime::Result<AggregationMode> parse_aggregation_mode(std::string_view name);
std::string_view to_string(AggregationMode mode);

/// Denominators default to what the batch itself holds. Micro-batches and workers that together
/// make one step pass the step's totals. So the sum of their losses (and of their gradients) does
/// not depend on how the step was cut.
struct Aggregation {
  AggregationMode mode = AggregationMode::kTokenMean;
  std::optional<double> tokens;  // response tokens in the step: kTokenMean
  std::optional<double>
      sequences;  // sequences in the step with at least one response token: kSeqMean...
  std::optional<double> horizon;  // tokens that kSeqMeanTokenSumNorm divides by; default T
};

/// Scalar loss. A batch without any response token gives 0.
at::Tensor aggregate(const at::Tensor& loss_BT, const at::Tensor& mask_BT,
                     const Aggregation& aggregation);

}  // namespace rl
