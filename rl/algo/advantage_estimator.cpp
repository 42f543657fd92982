#include "rl/algo/advantage_estimator.h"

#include "rl/algo/custom_advantage.h"
#include "rl/algo/estimator_list.h"
#include "rl/config/custom_choices.h"

namespace rl {
namespace {

struct NamedEstimator {
  std::string_view name;
  const AdvantageEstimator& (*estimator)();
};

// The factory. keys.inc has the same names, which --check and the guide read without this library.
// verl's ..._vectorized are its faster code for the same.
constexpr NamedEstimator kFactory[] = {
    {"codapo", codapo_estimator},
    {"disco", disco_estimator},
    {"gae", gae_estimator},
    {"gdpo", gdpo_estimator},
    {"gpg", gpg_estimator},
    {"grpo", grpo_estimator},
    {"grpo_passk", grpo_passk_estimator},
    {"grpo_vectorized", grpo_estimator},
    {"opo", opo_estimator},
    {"optimal_token_baseline", optimal_token_baseline_estimator},
    {"reinforce_plus_plus", reinforce_plus_plus_estimator},
    {"reinforce_plus_plus_baseline", reinforce_plus_plus_baseline_estimator},
    {"remax", remax_estimator},
    {"rloo", rloo_estimator},
    {"rloo_vectorized", rloo_estimator},
    {"tir_optimal_token_baseline", tir_optimal_token_baseline_estimator},
};

}  // namespace

runtime::Result<const AdvantageEstimator*> parse_advantage_estimator(std::string_view name) {
  for (const NamedEstimator& row : kFactory) {
    if (row.name == name) return &row.estimator();
  }
  if (const AdvantageEstimator* custom = find_custom_estimator(name)) return custom;
  std::vector<std::string> known = advantage_estimator_names();
  for (const std::string& custom : added_choices("algorithm.adv_estimator"))
    known.push_back(custom);
  std::string names;
  for (const std::string& one : known) names += (names.empty() ? "" : ", ") + one;
  return runtime::invalid_argument("advantage estimator \"" + std::string(name) + "\" is none of " +
                                   names +
                                   "; register a custom one in main before run(), in workers too");
}

const AdvantageEstimator& advantage_estimator(std::string_view name) {
  return **parse_advantage_estimator(name);
}

std::vector<std::string> advantage_estimator_names() {
  std::vector<std::string> names;
  for (const NamedEstimator& row : kFactory) names.emplace_back(row.name);
  return names;
}

}  // namespace rl
