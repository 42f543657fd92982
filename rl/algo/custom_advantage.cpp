#include "rl/algo/custom_advantage.h"

#include <cmath>
#include <exception>
#include <map>
#include <utility>

#include "rl/algo/response_estimator.h"
#include "rl/config/custom_choices.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

using CustomEstimators =
    std::map<std::string, std::unique_ptr<const AdvantageEstimator>, std::less<>>;

CustomEstimators& custom_estimators() {
  static CustomEstimators all;
  return all;
}

// What a user's function gives, once it is checked. Whether it gives a remainder of one response an
// advantage of another scale is not known, so that none stays.
class FunctionEstimator : public ResponseEstimator {
 public:
  FunctionEstimator(const std::string& name, AdvantageFunction function)
      : ResponseEstimator({.name = name, .remainder_min = 2}), function_(std::move(function)) {}

  runtime::Result<std::vector<float>> advantages(const ScoredResponses& responses,
                                                 const ResponseSettings& settings) const override {
    const std::string who = "advantage estimator \"" + name() + "\": ";
    const std::vector<float>& scores = responses.rewards;
    std::vector<float> advantages;
    try {
      advantages = function_(scores, responses.groups, responses.lengths);
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

 private:
  AdvantageFunction function_;
};

}  // namespace

void register_advantage_estimator(const std::string& name, AdvantageFunction function) {
  CHECK(function != nullptr);
  register_advantage_estimator(std::make_unique<FunctionEstimator>(name, std::move(function)));
}

void register_advantage_estimator(std::unique_ptr<const AdvantageEstimator> estimator) {
  CHECK(estimator != nullptr);
  add_choice("algorithm.adv_estimator", estimator->name());
  const std::string name = estimator->name();
  custom_estimators().emplace(name, std::move(estimator));
}

const AdvantageEstimator* find_custom_estimator(std::string_view name) {
  const auto found = custom_estimators().find(name);
  return found == custom_estimators().end() ? nullptr : found->second.get();
}

}  // namespace rl
