#include "rl/reward/answer.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "rl/reward/math_answer.h"
#include "rl/reward/number_text.h"
#include "rl/reward/search_answer.h"

namespace rl {
namespace {

// "42.0", "42" and "1,000" are 42 and 1000.
std::string number_form(const std::string& digits) {
  const std::optional<WrittenNumber> number = WrittenNumber::parse(digits);
  return number ? number->text() : digits;
}

// A number where it is one and nothing else, otherwise what mathematics makes of it.
std::string form(std::string_view answer) {
  if (const std::optional<WrittenNumber> number = number_of_truth(answer)) return number->text();
  return normal_form(answer);
}

std::optional<std::string_view> line_behind(std::string_view text, std::string_view mark) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t at = lower.rfind(mark);
  if (at == lower.npos) return std::nullopt;
  const std::string_view rest = trim(text.substr(at + mark.size()));
  return rest.substr(0, rest.find('\n'));
}

}  // namespace

std::string answer_of(std::string_view response) {
  if (const auto boxed = last_boxed(response)) return form(*boxed);
  if (const auto tagged = tagged_answer(response)) return form(trim(*tagged));
  if (const auto marked = line_behind(response, "####")) return form(trim(*marked));
  if (const auto line = line_behind(response, "answer:")) return form(*line);
  if (const std::string number = last_number(response); !number.empty()) return number_form(number);
  return std::string(trim(response));
}

}  // namespace rl
