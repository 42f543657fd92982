// An advantage estimator of a program's own: one pure function, registered under the name that the
// configuration chooses it by; see custom_policy_loss.h.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/algo/group_advantage.h"
#include "runtime/core/result.h"

namespace rl {

/// One advantage for each response of the step, from scores (less the KL, if it is in the reward),
/// groups and lengths in tokens. Conventions are as in group_advantage.h. Groups have `rollout.n`
/// responses, and at least two if n is, where some have no score.
using AdvantageFunction = std::function<std::vector<float>(
    std::span<const float> scores, Groups groups, std::span<const std::int64_t> lengths)>;

/// Makes `algorithm.adv_estimator=<name>` this estimator. In main, before run(), equally in driver
/// and workers. Registering a name twice, or one that there is, is a bug.
void register_advantage_estimator(const std::string& name, AdvantageFunction function);

/// One that was registered.
struct CustomAdvantages {
  std::string name;
  AdvantageFunction function;

  /// kInvalidArgument: the function gave another number of advantages than there are scores, or one
  /// that is not finite. kTaskFailed: it threw.
  runtime::Result<std::vector<float>> of(std::span<const float> scores, Groups groups,
                                         std::span<const std::int64_t> lengths) const;
};

/// nullptr: none of that name.
const CustomAdvantages* find_custom_advantages(std::string_view name);

}  // namespace rl
