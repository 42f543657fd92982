// A custom advantage estimator: one pure function, or one class, registered under the name that the
// configuration chooses it by; see custom_policy_loss.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/algo/advantage_estimator.h"
#include "rl/algo/group_advantage.h"

namespace rl {

/// One advantage for each response of the step, from scores (less the KL, if it is in the reward),
/// groups and lengths in tokens. Conventions are as in group_advantage.h. Groups have `rollout.n`
/// responses, and at least two if n is, where some have no score.
using AdvantageFunction = std::function<std::vector<float>(
    std::span<const float> scores, Groups groups, std::span<const std::int64_t> lengths)>;

/// Makes `algorithm.adv_estimator=<name>` this estimator. In main, before run(), equally in driver
/// and workers. Registering a name twice, or one that there is, is a bug. The function's errors are
/// the step's: kTaskFailed where it throws. kInvalidArgument where it gives another number of
/// advantages than there are scores, or one that is not finite.
void register_advantage_estimator(const std::string& name, AdvantageFunction function);

/// The same for a class, by the name in its traits: a row of the factory that a program adds.
void register_advantage_estimator(std::unique_ptr<const AdvantageEstimator> estimator);

/// nullptr: none of that name was registered.
const AdvantageEstimator* find_custom_estimator(std::string_view name);

}  // namespace rl
