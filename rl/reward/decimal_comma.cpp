#include "rl/reward/decimal_comma.h"

#include <algorithm>

#include "rl/reward/characters.h"
#include "rl/reward/math_relation.h"
#include "rl/reward/number_text.h"

namespace rl {
namespace {

std::size_t count_digits(std::string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) -
                                  text.begin());
}

/// Takes "1.234.567" or "1234" off the beginning; the digits alone.
std::string take_whole(std::string_view& text, bool& has_groups) {
  std::size_t digits = count_digits(text);
  std::string whole(text.substr(0, digits));
  has_groups = false;
  while (digits > 0 && digits <= 3 && text.substr(digits).starts_with('.') &&
         count_digits(text.substr(digits + 1)) == 3) {
    has_groups = true;
    whole += text.substr(digits + 1, 3);
    text.remove_prefix(digits + 1);
    digits = 3;
  }
  text.remove_prefix(digits);
  return whole;
}

std::string_view without_delimiters(std::string_view text) {
  text = trim(text);
  while (text.starts_with('$') || text.starts_with("\\("))
    text.remove_prefix(text.starts_with('$') ? 1 : 2);
  return trim(text);
}

}  // namespace

std::optional<std::string> with_decimal_point(std::string_view text, Commas commas) {
  constexpr std::string_view kBraced = "{,}";
  const std::string stated(without_delimiters(with_plain_minus(text)));
  const std::string value = named_value(stated).value_or(stated);
  text = without_delimiters(value);
  std::string number;
  if (text.starts_with('-')) {
    number = "-";
    text.remove_prefix(1);
  }
  bool has_groups = false;
  const std::string whole = take_whole(text, has_groups);
  const bool braced = text.starts_with(kBraced);
  if (whole.empty() || (!braced && !text.starts_with(','))) return std::nullopt;
  text.remove_prefix(braced ? kBraced.size() : 1);
  const std::size_t digits = count_digits(text);
  const std::string_view rest = text.substr(digits);
  const bool thousands = !has_groups && digits == 3 && whole.size() <= 3 && whole.front() != '0';
  const bool plain = braced || has_groups;
  if (digits == 0 || thousands || (!plain && commas == Commas::kPlain) ||
      rest.find_first_of(",;.") != rest.npos)
    return std::nullopt;
  return number + whole + "." + std::string(text);
}

}  // namespace rl
