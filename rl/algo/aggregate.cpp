#include "rl/algo/aggregate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "rl/algo/masked.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr std::array kAggregationNames = {
    std::pair{AggregationMode::kTokenMean, std::string_view("token-mean")},
    std::pair{AggregationMode::kTokenSum, std::string_view("token-sum")},
    std::pair{AggregationMode::kSeqMeanTokenSum, std::string_view("seq-mean-token-sum")},
    std::pair{AggregationMode::kSeqMeanTokenSumNorm, std::string_view("seq-mean-token-sum-norm")},
    std::pair{AggregationMode::kSeqMeanTokenMean, std::string_view("seq-mean-token-mean")},
};

}  // namespace

runtime::Result<AggregationMode> parse_aggregation_mode(std::string_view name) {
  std::string known;
  for (const auto& [mode, text] : kAggregationNames) {
    if (text == name) return mode;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  return runtime::invalid_argument("loss aggregation \"" + std::string(name) + "\" is none of " +
                                   known);
}

std::string_view to_string(AggregationMode mode) {
  return std::find_if(kAggregationNames.begin(), kAggregationNames.end(),
                      [&](const auto& entry) { return entry.first == mode; })
      ->second;
}

at::Tensor aggregate(const at::Tensor& loss_BT, const at::Tensor& mask_BT,
                     const Aggregation& aggregation) {
  CHECK(loss_BT.dim() == 2 && loss_BT.sizes() == mask_BT.sizes());
  const at::Tensor lengths_B = mask_BT.sum(1);
  // At least one: an empty batch has loss 0, not NaN.
  const double tokens = std::max(aggregation.tokens.value_or(lengths_B.sum().item<double>()), 1.0);
  const double sequences =
      std::max(aggregation.sequences.value_or((lengths_B > 0).sum().item<double>()), 1.0);
  switch (aggregation.mode) {
    case AggregationMode::kTokenMean: return masked_sum(loss_BT, mask_BT) / tokens;
    case AggregationMode::kTokenSum: return masked_sum(loss_BT, mask_BT);
    case AggregationMode::kSeqMeanTokenSum: return masked_sum(loss_BT, mask_BT) / sequences;
    case AggregationMode::kSeqMeanTokenSumNorm: {
      const double horizon = aggregation.horizon.value_or(
          static_cast<double>(std::max<std::int64_t>(mask_BT.size(1), 1)));
      return masked_sum(loss_BT, mask_BT) / sequences / horizon;
    }
    case AggregationMode::kSeqMeanTokenMean: {
      const at::Tensor weights_BT = mask_BT / lengths_B.clamp_min(1.0).unsqueeze(1);
      return (at::where(mask_BT.to(at::kBool), loss_BT, at::zeros({}, loss_BT.options())) *
              weights_BT)
                 .sum() /
             sequences;
    }
  }
  runtime::check_failed(__FILE__, __LINE__, "unknown aggregation mode");
}

}  // namespace rl
