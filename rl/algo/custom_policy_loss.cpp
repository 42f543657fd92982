#include "rl/algo/custom_policy_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

#include <exception>
#include <utility>

#include "rl/config/custom_choices.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr const char* kSection = "actor_rollout_ref.actor.policy_loss.";

std::map<std::string, CustomPolicyLoss, std::less<>>& losses() {
  static std::map<std::string, CustomPolicyLoss, std::less<>> all;
  return all;
}

// Shares of tokens are counted with them.
at::Tensor as_indicator(const at::Tensor& held_back_BT, const at::Tensor& mask_BT) {
  return held_back_BT.defined() ? held_back_BT.detach().to(mask_BT.scalar_type())
                                : at::zeros_like(mask_BT);
}

}  // namespace

void register_policy_loss(const std::string& name, PolicyLossFunction function,
                          PolicyLossNumbers numbers) {
  CHECK(function != nullptr);
  add_choice(std::string(kSection) + "loss_mode", name);
  for (const auto& [key, otherwise] : numbers) add_key(kSection + key);
  losses().emplace(name, CustomPolicyLoss{name, std::move(function), std::move(numbers)});
}

const CustomPolicyLoss* find_policy_loss(std::string_view name) {
  const auto found = losses().find(name);
  return found == losses().end() ? nullptr : &found->second;
}

runtime::Result<PolicyLoss> CustomPolicyLoss::loss(const at::Tensor& logprobs_BT,
                                                   const at::Tensor& old_logprobs_BT,
                                                   const at::Tensor& advantages_BT,
                                                   const at::Tensor& mask_BT,
                                                   const ClipOptions& clip) const {
  const std::string who = "policy loss \"" + name + "\": ";
  PolicyLoss out;
  try {
    out = function(logprobs_BT, old_logprobs_BT, advantages_BT, mask_BT,
                   PolicyLossOptions{clip, numbers});
  } catch (const std::exception& error) {
    const std::string_view what =
        error.what();  // behind the first line of ATen's comes a backtrace
    return runtime::task_failed(who + std::string(what.substr(0, what.find('\n'))));
  } catch (...) {
    return runtime::task_failed(who + "it threw something that is not a std::exception");
  }
  if (!out.loss_BT.defined()) return runtime::invalid_argument(who + "it gives no loss_BT");
  out.clipped_BT = as_indicator(out.clipped_BT, mask_BT);
  out.clipped_lower_BT = as_indicator(out.clipped_lower_BT, mask_BT);
  for (const at::Tensor& values : {out.loss_BT, out.clipped_BT, out.clipped_lower_BT}) {
    if (values.sizes() != mask_BT.sizes())
      return runtime::invalid_argument(who +
                                       "it gives a tensor of another shape than the log-probs', "
                                       "which have a row a response and a column a token");
  }
  if (logprobs_BT.requires_grad() && !out.loss_BT.requires_grad())
    return runtime::invalid_argument(
        who + "it does not depend on logprobs_BT, so that nothing can be learned from it");
  return out;
}

}  // namespace rl
