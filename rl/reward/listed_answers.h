// Ground truths that are lists: each member is an answer that is right.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// The members as texts. kInvalidArgument: there is none, or one is no text, number or boolean;
/// the message names the rule.
runtime::Result<std::vector<std::string>> listed_answers(std::string_view rule,
                                                         const nlohmann::ordered_json& list);

}  // namespace rl
