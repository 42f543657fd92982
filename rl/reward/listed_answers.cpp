#include "rl/reward/listed_answers.h"

#include "rl/data/json_text.h"

namespace rl {

runtime::Result<std::vector<std::string>> listed_answers(std::string_view rule,
                                                         const nlohmann::ordered_json& list) {
  const std::string at = "reward rule '" + std::string(rule) + "': the ground truth is a list";
  if (list.empty()) return runtime::invalid_argument(at + " without members");
  std::vector<std::string> answers;
  for (const nlohmann::ordered_json& member : list) {
    if (member.is_structured() || member.is_null())
      return runtime::invalid_argument(
          at + ", whose members are the answers that are right, and one of them is " +
          json_type_name(member) + ". Write texts, or score by a custom function");
    answers.push_back(json_as_text(member));
  }
  return answers;
}

}  // namespace rl
