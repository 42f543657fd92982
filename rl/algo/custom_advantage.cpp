#include "rl/algo/custom_advantage.h"

#include <cmath>
#include <exception>
#include <map>
#include <utility>

#include "rl/config/custom_choices.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

std::map<std::string, CustomAdvantages, std::less<>>& estimators() {
  static std::map<std::string, CustomAdvantages, std::less<>> all;
  return all;
}

}  // namespace

void register_advantage_estimator(const std::string& name, AdvantageFunction function) {
  CHECK(function != nullptr);
  add_choice("algorithm.adv_estimator", name);
  estimators().emplace(name, CustomAdvantages{name, std::move(function)});
}

const CustomAdvantages* find_custom_advantages(std::string_view name) {
  const auto found = estimators().find(name);
  return found == estimators().end() ? nullptr : &found->second;
}

runtime::Result<std::vector<float>> CustomAdvantages::of(
    std::span<const float> scores, Groups groups, std::span<const std::int64_t> lengths) const {
  const std::string who = "advantage estimator \"" + name + "\": ";
  std::vector<float> advantages;
  try {
    advantages = function(scores, groups, lengths);
  } catch (const std::exception& error) {
    return runtime::task_failed(who + error.what());
  } catch (...) {
    return runtime::task_failed(who + "it threw something that is not a std::exception");
  }
  if (advantages.size() != scores.size())
    return runtime::invalid_argument(who + "it gives " + std::to_string(advantages.size()) +
                                     " advantages for " + std::to_string(scores.size()) +
                                     " scores");
  for (std::size_t i = 0; i < advantages.size(); ++i) {
    if (!std::isfinite(advantages[i]))
      return runtime::invalid_argument(who + "the advantage of response " + std::to_string(i) +
                                       ", which scores " + std::to_string(scores[i]) +
                                       ", is not finite");
  }
  return advantages;
}

}  // namespace rl
