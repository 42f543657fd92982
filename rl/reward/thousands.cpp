#include "rl/reward/thousands.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "rl/reward/characters.h"
#include "rl/reward/latex_text.h"

namespace rl {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

/// Where the digits that begin at `at` end.
std::size_t end_of_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

std::string without_commas(std::string text) {
  if (text.find_first_of("([{") != text.npos && text.find("\\frac") == text.npos) return text;
  for (std::size_t at = text.find(','); at != text.npos; at = text.find(',', at + 1)) {
    std::size_t before = at;
    while (before > 0 && is_digit(text[before - 1])) --before;
    const std::size_t after = end_of_digits(text, at + 1);
    const bool first = before == 0 || (text[before - 1] != ',' && text[before - 1] != '.');
    if (!first || at == before || at - before > 3 || after - at != 4 || text[before] == '0')
      continue;
    text.erase(at--, 1);
    // Further groups: "1,234,567" is now "1234,567".
    for (std::size_t next = at + 4; next + 3 < text.size() && text[next] == ','; next += 3) {
      if (end_of_digits(text, next + 1) - next != 4) break;
      text.erase(next, 1);
    }
  }
  return text;
}

std::string without_blanks(std::string text) {
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string whole = text.substr(sign, point - sign);
  if (whole.find(' ') == whole.npos) return text;
  const std::vector<std::string> groups = split_parts(whole, " ");
  std::string joined = text.substr(0, sign);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool fits = i == 0 ? groups[i].size() <= 3 : groups[i].size() == 3;
    if (!fits || !all_digits(groups[i])) return text;
    joined += groups[i];
  }
  return joined + text.substr(point);
}

}  // namespace

std::string without_thousands_separators(std::string text) {
  return without_blanks(without_commas(std::move(text)));
}

}  // namespace rl
