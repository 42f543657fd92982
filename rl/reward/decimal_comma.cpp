#include "rl/reward/decimal_comma.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "rl/reward/characters.h"
#include "rl/reward/latex_text.h"
#include "rl/reward/math_relation.h"
#include "rl/reward/number_text.h"

namespace rl {
namespace {

constexpr std::string_view kBraced = "{,}";

std::size_t count_digits(std::string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) -
                                  text.begin());
}

/// Takes "1.234.567", "1 234 567" or "1234" off the beginning; the digits alone.
std::string take_whole(std::string_view& text, bool& has_groups) {
  std::size_t digits = count_digits(text);
  std::string whole(text.substr(0, digits));
  has_groups = false;
  const char separator = digits < text.size() && text[digits] == ' ' ? ' ' : '.';
  while (digits > 0 && digits <= 3 && text.substr(digits).starts_with(separator) &&
         count_digits(text.substr(digits + 1)) == 3) {
    has_groups = true;
    whole += text.substr(digits + 1, 3);
    text.remove_prefix(digits + 1);
    digits = 3;
  }
  text.remove_prefix(digits);
  return whole;
}

/// Without "$", "\\(" and signs of currencies before it.
std::string_view without_delimiters(std::string_view text) {
  for (bool found = true; found;) {
    found = false;
    text = trim(text);
    for (const std::string_view sign : {"$", "\\$", "\\(", "\u20ac", "\u00a3", "\u00a5"}) {
      if (!text.starts_with(sign)) continue;
      text.remove_prefix(sign.size());
      found = true;
    }
  }
  return text;
}

/// Blanks of LaTeX and Unicode as plain ones.
std::string with_plain_blanks(std::string text) {
  for (const std::string_view blank : {"\\,", "\\ ", "~", "\u00a0", "\u2009", "\u202f"})
    replace_all(text, blank, " ");
  return text;
}

/// Where a comma is between digits, with how many bytes it has; not before a group of thousands.
std::optional<std::size_t> decimal_comma_at(std::string_view text, std::size_t at, bool plain) {
  const std::size_t size = text.substr(at).starts_with(kBraced) ? kBraced.size() : 1;
  if (size == 1 && (!plain || text[at] != ',')) return std::nullopt;
  std::size_t begin = at;
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  const std::size_t whole = at - begin, decimals = count_digits(text.substr(at + size));
  const bool thousands = decimals == 3 && whole <= 3 && text[begin] != '0';
  return whole == 0 || decimals == 0 || thousands ? std::nullopt : std::optional(size);
}

/// The numbers of the brackets whose members ";" separates; 0: outside all.
std::set<std::size_t> brackets_with_semicolons(std::string_view text,
                                               std::vector<std::size_t>& bracket_of) {
  std::set<std::size_t> found;
  std::vector<std::size_t> open{0};
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[' || c == '{') open.push_back(++count);
    bracket_of.push_back(open.back());
    if ((c == ')' || c == ']' || c == '}') && open.size() > 1) open.pop_back();
    if (c == ';' && (i == 0 || text[i - 1] != '\\')) found.insert(open.back());
  }
  return found;
}

}  // namespace

std::optional<std::string> with_decimal_points_in_list(std::string_view text) {
  std::vector<std::size_t> bracket_of;
  const std::set<std::size_t> by_semicolons = brackets_with_semicolons(text, bracket_of);
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto comma = decimal_comma_at(text, at, by_semicolons.contains(bracket_of[at]));
    out += comma ? '.' : text[at];
    at += comma.value_or(1);
  }
  return out == text ? std::nullopt : std::optional(out);
}

std::optional<std::string> with_decimal_points_in_formula(std::string_view text) {
  std::string out;
  int depth = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const bool is_set = at > 0 && text[at - 1] == '\\' && (c == '{' || c == '}');
    if (c == '(' || c == '[' || (is_set && c == '{')) ++depth;
    if (c == ')' || c == ']' || (is_set && c == '}')) --depth;
    const auto comma = decimal_comma_at(text, at, true);
    if (c == ',' && !comma) return std::nullopt;
    if (comma) {
      // "1,2,3" and "1.5,2" are lists.
      std::size_t begin = at;
      while (begin > 0 && is_digit(text[begin - 1])) --begin;
      const bool follows = begin > 0 && (text[begin - 1] == ',' || text[begin - 1] == '.');
      if (depth != 0 || follows) return std::nullopt;
    }
    out += comma ? '.' : c;
    at += comma.value_or(1);
  }
  return out == text ? std::nullopt : std::optional(out);
}

std::optional<std::string> with_decimal_point(std::string_view text, Commas commas) {
  const std::string stated(without_delimiters(with_plain_blanks(with_plain_minus(text))));
  const std::string value = named_value(stated).value_or(stated);
  text = without_delimiters(value);
  std::string number;
  if (text.starts_with('-') || text.starts_with('+')) {
    if (text.starts_with('-')) number = "-";
    text.remove_prefix(1);
  }
  bool has_groups = false;
  const std::string whole = take_whole(text, has_groups);
  constexpr std::size_t kTwoGroups = 7;  // digits: "1.234.567" has no comma, and is no decimal
  if (has_groups && whole.size() >= kTwoGroups && whole.front() != '0' &&
      text.find_first_of(",;.") == text.npos)
    return number + whole + std::string(text);
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
