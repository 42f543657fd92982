// The answer in a response, for any scorer.
#pragma once

#include <string>
#include <string_view>

namespace rl {

/// The answer in a form in which equal answers are mostly equal texts, for counting votes. The
/// first that there is of: the last \boxed{...}; the last <answer>...</answer>; what follows the
/// last "####"; the line behind the last "answer:"; the last number; all of the response.
std::string answer_of(std::string_view response);

}  // namespace rl
