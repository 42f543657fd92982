#include "rl/algo/gated_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cstdlib>
#include <string>

#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr double kTiny = 1e-8;  // keeps the logarithm of what is left of a probability finite
constexpr double kLogWeightMax = 20.0;  // of a sequence's weight, before its bounds

at::Tensor as_float(const at::Tensor& condition, const at::Tensor& like) {
  return condition.to(like.scalar_type());
}

}  // namespace

PolicyLoss sapo_loss(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                     const at::Tensor& advantages_BT, const SapoOptions& options) {
  CHECK(options.tau_positive > 0 && options.tau_negative > 0);
  const at::Tensor constant_BT = advantages_BT.detach();
  const at::Tensor positive_BT = as_float(constant_BT > 0, constant_BT);
  const at::Tensor tau_BT =
      positive_BT * options.tau_positive + (1.0 - positive_BT) * options.tau_negative;
  const at::Tensor gate_BT =
      at::sigmoid(tau_BT * (importance_ratio(logprobs_BT, old_logprobs_BT) - 1.0)) * (4.0 / tau_BT);
  const at::Tensor none_BT = at::zeros_like(constant_BT);
  return {-gate_BT * constant_BT, none_BT, none_BT};
}

PolicyLoss dppo_loss(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                     const at::Tensor& advantages_BT, TokenDivergence divergence,
                     const ClipOptions& clip) {
  CHECK(logprobs_BT.sizes() == old_logprobs_BT.sizes() &&
        logprobs_BT.sizes() == advantages_BT.sizes());
  const at::Tensor constant_BT = advantages_BT.detach();
  const at::Tensor now_BT = logprobs_BT.detach().exp();
  const at::Tensor before_BT = old_logprobs_BT.detach().exp();
  at::Tensor distance_BT = (now_BT - before_BT).abs();
  if (divergence == TokenDivergence::kKl) {
    distance_BT = before_BT * (old_logprobs_BT.detach() - logprobs_BT.detach()) +
                  (1.0 - before_BT) * ((1.0 - before_BT + kTiny) / (1.0 - now_BT + kTiny)).log();
  }
  const at::Tensor left_upwards_BT = (now_BT > before_BT).logical_and(distance_BT > clip.high);
  const at::Tensor left_downwards_BT = (now_BT < before_BT).logical_and(distance_BT > clip.low);
  const at::Tensor left_BT =
      as_float(at::where(constant_BT > 0, left_upwards_BT, left_downwards_BT), constant_BT);
  const at::Tensor ratio_BT = importance_ratio(logprobs_BT.detach(), old_logprobs_BT);
  PolicyLoss out;
  out.clipped_BT = left_BT;
  out.clipped_lower_BT = clip.dual ? as_float(ratio_BT > *clip.dual, constant_BT) * (1.0 - left_BT)
                                   : at::zeros_like(constant_BT);
  out.loss_BT = -constant_BT * (clip.dual ? ratio_BT.clamp_max(*clip.dual) : ratio_BT) *
                logprobs_BT * (1.0 - left_BT);
  return out;
}

PolicyLoss dro_loss(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                    const at::Tensor& advantages_BT, double beta) {
  CHECK(beta > 0);
  const at::Tensor log_BT = logprobs_BT - old_logprobs_BT.detach();
  const at::Tensor none_BT = at::zeros_like(advantages_BT);
  return {-(logprobs_BT * advantages_BT.detach() - log_BT.square() * (0.5 * beta)), none_BT,
          none_BT};
}

runtime::Result<ImportanceWeightOptions> parse_importance_bounds(std::string_view text) {
  const auto number = [](std::string_view part) -> std::optional<double> {
    const std::string copy(part);
    char* end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    if (copy.empty() || *end != 0 || !(value > 0)) return std::nullopt;
    return value;
  };
  ImportanceWeightOptions options;
  const std::size_t cut = text.find('_');
  if (cut != std::string_view::npos) options.lower = number(text.substr(0, cut));
  const std::optional<double> upper =
      number(cut == std::string_view::npos ? text : text.substr(cut + 1));
  if (!upper || (cut != std::string_view::npos && !(options.lower && *options.lower <= *upper))) {
    return runtime::invalid_argument(
        "\"" + std::string(text) +
        "\" is neither an upper bound above 0 (\"2.0\") nor LOWER_UPPER (\"0.5_5.0\")");
  }
  options.upper = *upper;
  return options;
}

at::Tensor importance_weights(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                              const at::Tensor& mask_BT, const ImportanceWeightOptions& options) {
  CHECK(logprobs_BT.sizes() == mask_BT.sizes());
  const at::Tensor mask = mask_BT.to(at::kBool);
  at::Tensor log_BT =
      at::where(mask, (logprobs_BT - old_logprobs_BT).detach(), at::zeros_like(old_logprobs_BT));
  if (options.by_sequence) log_BT = log_BT.sum(1, /*keepdim=*/true).expand_as(log_BT);
  const at::Tensor weights_BT = log_BT.clamp(-kLogWeightMax, kLogWeightMax).exp();
  if (!options.lower) return weights_BT.clamp_max(options.upper);
  return weights_BT *
         as_float((weights_BT >= *options.lower).logical_and(weights_BT <= options.upper),
                  weights_BT);
}

PolicyLoss weighted_policy_gradient_loss(const at::Tensor& logprobs_BT,
                                         const at::Tensor& old_logprobs_BT,
                                         const at::Tensor& advantages_BT, const at::Tensor& mask_BT,
                                         const std::optional<ImportanceWeightOptions>& options) {
  PolicyLoss out = policy_gradient_loss(logprobs_BT, advantages_BT);
  if (!options) return out;
  const at::Tensor weights_BT = importance_weights(logprobs_BT, old_logprobs_BT, mask_BT, *options);
  out.loss_BT = out.loss_BT * weights_BT;
  const at::Tensor high_BT = weights_BT >= options->upper;
  out.clipped_BT =
      as_float(options->lower ? (weights_BT == 0).logical_or(high_BT) : high_BT, weights_BT);
  return out;
}

}  // namespace rl
