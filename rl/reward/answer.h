// The answer in a response, for any scorer.
#pragma once

#include <string>
#include <string_view>

namespace rl {

/// The answer in a form in which equal answers are mostly equal texts, for counting votes. It is
/// the first that there is of the last \boxed{...}, the last <answer>...</answer>, and what follows
/// the last "####". After these come the line behind the last "answer:", the last number, and all
/// of the response.
std::string answer_of(std::string_view response);

}  // namespace rl
