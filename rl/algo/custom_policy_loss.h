// A custom policy loss: one pure function, registered under the name that the configuration chooses
// it by.
//
//   int main(int argc, char** argv) {
//     runtime::Runtime runtime(argc, argv);
//     rl::register_training_actors(runtime);
//     rl::register_policy_loss("band", band_loss, {{"band_width", 0.2}});  // ...loss_mode=band
//     return runtime.run(driver_main);
//   }
//
// Shapes and conventions as in policy_loss.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "rl/algo/policy_loss.h"
#include "runtime/core/result.h"

namespace rl {

/// Numbers by the names of their keys below `actor_rollout_ref.actor.policy_loss`.
using PolicyLossNumbers = std::map<std::string, double>;

struct PolicyLossOptions {
  ClipOptions clip;  // clip_ratio_low, clip_ratio_high and clip_ratio_c
  PolicyLossNumbers
      numbers;  // those that the loss was registered with, as the configuration has them
};

/// A loss per token, [B, T], as those of policy_loss.h: a gradient flows into the log-probs alone.
/// The rows are some responses of a mini-batch, however it was cut, so that a token's loss follows
/// from its own response. What stands where mask_BT is 0 never matters. clipped_BT and
/// clipped_lower_BT may be left undefined: nothing was held back. The rest is as with the other
/// losses: loss_agg_mode makes one number of the tokens', entropy bonus and KL loss are added.
using PolicyLossFunction = std::function<PolicyLoss(
    const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
    const at::Tensor& advantages_BT, const at::Tensor& mask_BT, const PolicyLossOptions& options)>;

/// Makes `actor_rollout_ref.actor.policy_loss.loss_mode=<name>` this loss. `numbers` are its
/// options with their defaults: keys next to loss_mode. In main, before run(), equally in driver
/// and workers, which are processes of the same program. Registering a name twice, or one that
/// there is, is a bug, and so is a number whose key there is.
void register_policy_loss(const std::string& name, PolicyLossFunction function,
                          PolicyLossNumbers numbers = {});

/// One that was registered.
struct CustomPolicyLoss {
  std::string name;
  PolicyLossFunction function;
  PolicyLossNumbers numbers;

  /// What the function gives, all of it defined. kInvalidArgument: tensors of another shape, or a
  /// loss that does not depend on the log-probs. kTaskFailed: the function threw.
  runtime::Result<PolicyLoss> loss(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                                   const at::Tensor& advantages_BT, const at::Tensor& mask_BT,
                                   const ClipOptions& clip) const;
};

/// nullptr: none of that name.
const CustomPolicyLoss* find_policy_loss(std::string_view name);

}  // namespace rl
