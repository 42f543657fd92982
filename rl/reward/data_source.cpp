// The rule that a data source implies: verl 0.9's default_compute_score, as far as it is built.
#include <array>
#include <utility>

#include "rl/reward/rule.h"

namespace rl {

std::span<const std::string_view> code_data_sources() {
  static constexpr std::array<std::string_view, 4> kSources = {"codecontests", "apps", "codeforces",
                                                               "taco"};
  return kSources;
}

runtime::Result<std::string> rule_for_data_source(std::string_view data_source) {
  using Entry = std::pair<std::string_view, const char*>;
  static constexpr std::array kRules = {
      Entry{"toy", "letters"},
      Entry{"arithmetic", "number"},
      Entry{"openai/gsm8k", "gsm8k"},
      Entry{"gsm8k", "gsm8k"},
      Entry{"lighteval/MATH", "math"},
      Entry{"DigitalLearningGmbH/MATH-lighteval", "math"},
      Entry{"HuggingFaceH4/MATH-500", "math"},
      Entry{"math_dapo", "math_dapo"},
      Entry{"math", "math_dapo"},
      Entry{"math_dapo_reasoning", "math_dapo"},
      Entry{"numina_aops_forum", "math"},
      Entry{"numina_synthetic_math", "math"},
      Entry{"numina_amc_aime", "math"},
      Entry{"numina_synthetic_amc", "math"},
      Entry{"numina_cn_k12", "math"},
      Entry{"numina_olympiads", "math"},
      Entry{"hiyouga/geometry3k", "geo3k"},
      Entry{"searchR1_nq", "search_qa"},
      Entry{"searchR1_triviaqa", "search_qa"},
      Entry{"searchR1_popqa", "search_qa"},
      Entry{"searchR1_hotpotqa", "search_qa"},
      Entry{"searchR1_2wikimultihopqa", "search_qa"},
      Entry{"searchR1_musique", "search_qa"},
      Entry{"searchR1_bamboogle", "search_qa"},
  };
  for (const auto& [source, rule] : kRules) {
    if (data_source == source) return std::string(rule);
  }
  if (data_source.starts_with("aime")) return std::string("math_dapo");
  for (const std::string_view code : code_data_sources()) {
    if (data_source != code) continue;
    return runtime::invalid_argument(
        "data source '" + std::string(data_source) +
        "' is scored by running programs: set reward.sandbox_fusion.url to the address of a "
        "SandboxFusion server, "
        "or name a custom scorer by reward.custom_reward_function.path or reward.http.url");
  }
  return runtime::invalid_argument("nothing says how to score data source '" +
                                   std::string(data_source) + "': set reward.rule to one of " +
                                   list_reward_rules() + ", or reward.custom_reward_function.path");
}

}  // namespace rl
