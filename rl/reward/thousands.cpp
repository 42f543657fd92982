#include "rl/reward/thousands.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/reward/characters.h"
#include "rl/reward/latex_text.h"
#include "rl/reward/number_text.h"

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

/// Digits, and groups of three behind commas: "1,234,567".
struct Chain {
  std::string_view head;
  std::vector<std::string_view> groups = {};
  std::size_t end = 0;

  Chain(std::string_view text, std::size_t begin) : end(end_of_digits(text, begin)) {
    head = text.substr(begin, end - begin);
    while (end < text.size() && text[end] == ',' && end_of_digits(text, end + 1) - end == 4) {
      groups.push_back(text.substr(end + 1, 3));
      end += 4;
    }
  }
  bool can_be_grouped() const {
    return head.size() <= 3 && !head.starts_with('0') && !groups.empty();
  }
  bool has_certain_group() const {
    return std::any_of(groups.begin(), groups.end(),
                       [](std::string_view group) { return group.starts_with('0'); });
  }
};

/// The brackets of a list, an interval or a set that are open, with whether blanks show
/// where members end: "(0, 1,250)". Braces behind a command, "^" and "_" are an argument's.
class OpenBrackets {
 public:
  explicit OpenBrackets(std::string_view text) : text_(text) {}

  void pass(std::size_t at) {
    const char c = text_[at];
    if (c == '(' || c == '[' || c == '{') open_.push_back(is_argument(at) || has_blanks(at + 1));
    if ((c == ')' || c == ']' || c == '}') && !open_.empty()) open_.pop_back();
  }
  /// Whether "1,250" is a number here; else it is two members.
  bool group_thousands() const { return open_.empty() || open_.back(); }

 private:
  bool is_argument(std::size_t at) const {
    if (text_[at] != '{' || at == 0) return false;
    const char before = text_[at - 1];
    return is_letter(before) || before == '^' || before == '_' || before == '}' || before == ']';
  }
  /// Whether a blank stands behind a comma of these brackets.
  bool has_blanks(std::size_t at) const {
    int depth = 1;
    for (; at < text_.size() && depth > 0; ++at) {
      const char c = text_[at];
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') --depth;
      if (depth == 1 && text_.substr(at).starts_with(", ")) return true;
    }
    return false;
  }

  const std::string_view text_;
  std::vector<bool> open_;
};

std::string without_commas(std::string_view text, Groups which) {
  std::string out;
  OpenBrackets brackets(text);
  for (std::size_t at = 0; at < text.size();) {
    if (!is_digit(text[at])) {
      brackets.pass(at);
      out += text[at++];
      continue;
    }
    const Chain chain(text, at);
    const char before = at > 0 ? text[at - 1] : ' ';
    const bool goes_on =
        chain.end + 1 < text.size() && text[chain.end] == ',' && is_digit(text[chain.end + 1]);
    const bool is_number = before != ',' && !goes_on;  // else members of a list without blanks
    const bool may_group = which == Groups::kAll && brackets.group_thousands();
    const bool all = is_number && (may_group || chain.has_certain_group());
    out += chain.head;
    for (const std::string_view group : chain.groups) {
      const bool joins = chain.can_be_grouped() && before != '.' && (all || group.starts_with('0'));
      if (!joins) out += ',';
      out += group;
    }
    at = chain.end;
  }
  return out;
}

/// "1 234.5" alone.
std::string without_blanks(std::string_view written) {
  const std::string_view text = trim(written);
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::vector<std::string> groups = split_parts(text.substr(0, point), " ");
  std::string joined;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool fits = i == 0 ? groups[i].size() <= 3 : groups[i].size() == 3;
    if (!fits || !all_digits(groups[i])) return std::string(written);
    joined += groups[i];
  }
  if (groups.size() < 2) return std::string(written);
  const std::size_t begin = written.find_first_not_of(' ');
  return std::string(written.substr(0, begin)) + joined + std::string(text.substr(point)) +
         std::string(written.substr(begin + text.size()));
}

/// Of each number that stands between brackets, commas, signs and relations.
std::string without_blanks_in_numbers(std::string_view text) {
  constexpr std::string_view kAround = "()[]{},+-*/=<>^_!|&\\\n";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(kAround, at), text.size());
    out += without_blanks(text.substr(at, end - at));
    if (end < text.size()) out += text[end];
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string without_thousands_separators(std::string text, Groups groups) {
  return without_blanks_in_numbers(without_commas(text, groups));
}

}  // namespace rl
