#include "rl/reward/math_text.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "rl/reward/characters.h"
#include "rl/reward/degree_signs.h"
#include "rl/reward/latex_looks.h"
#include "rl/reward/latex_text.h"
#include "rl/reward/math_units.h"
#include "rl/reward/number_text.h"
#include "rl/reward/quantity_words.h"
#include "rl/reward/styled_group.h"
#include "rl/reward/unicode_text.h"

namespace rl {
namespace {

constexpr int kTextDepthMax = 8;  // groups in groups

using Replacement = std::pair<std::string_view, std::string_view>;

void drop_delimiters(std::string& text) {
  replace_all(text, "\\$", "");
  replace_all(text, "$", "");
  for (const Replacement& pair : {Replacement{"\\(", "\\)"}, {"\\[", "\\]"}}) {
    if (!text.starts_with(pair.first) || !text.ends_with(pair.second)) continue;
    if (text.size() < 4) continue;
    text = std::string(trim(std::string_view(text).substr(2, text.size() - 4)));
  }
}

/// ",\!" and "{,}" before three digits are thousands separators and nothing else; so are
/// apostrophes.
void drop_spaced_thousands(std::string& text) {
  for (const std::string_view apostrophe : {"'", "\u2019"}) {
    for (std::size_t at = text.find(apostrophe, 1); at != text.npos;
         at = text.find(apostrophe, at + 1)) {
      const std::size_t next = at + apostrophe.size();
      std::size_t end = next;
      while (end < text.size() && is_digit(text[end])) ++end;
      if (end - next == 3 && is_digit(text[at - 1])) text.erase(at, apostrophe.size());
    }
  }
  for (const std::string_view separator : {",\\!", "{,}", "{ ,}", "{, }"}) {
    for (std::size_t at = text.find(separator); at != text.npos; at = text.find(separator, at)) {
      std::size_t next = at + separator.size();
      while (next < text.size() && text[next] == ' ') ++next;
      std::size_t end = next;
      while (end < text.size() && is_digit(text[end])) ++end;
      const bool groups = end - next == 3 && at > 0 && is_digit(text[at - 1]);
      text.replace(at, groups ? next - at : separator.size(), groups ? "" : ",");
    }
  }
}

/// The function that words name, as LaTeX has it; empty: none.
std::string_view function_name(std::string_view word) {
  static constexpr std::string_view kFunctions[] = {
      "sin",    "cos",    "tan",    "cot",  "sec",  "csc",  "arcsin", "arccos", "arctan",
      "arccot", "arcsec", "arccsc", "sinh", "cosh", "tanh", "cis",    "log",    "ln",
      "lg",     "exp",    "gcd",    "lcm",  "max",  "min",  "det"};
  static constexpr Replacement kOtherNames[] = {
      {"tg", "tan"}, {"ctg", "cot"}, {"cotg", "cot"}, {"cosec", "csc"}, {"arctg", "arctan"}};
  for (const auto& [name, usual] : kOtherNames) {
    if (word == name) return usual;
  }
  const auto* found = std::find(std::begin(kFunctions), std::end(kFunctions), word);
  return found == std::end(kFunctions) ? std::string_view() : *found;
}

/// "and", "or", "; and" and the like: between the members of a list.
bool joins_list(std::string_view words) {
  std::string letters;
  for (const char c : words) {
    if (c != ' ' && c != ',' && c != ';') letters += c;
  }
  const bool has_comma = words.find_first_of(",;") != words.npos;
  return letters == "and" || letters == "or" || letters == "&" || (letters.empty() && has_comma);
}

bool ends_with_command(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0 && is_letter(text[begin - 1])) --begin;
  return begin > 0 && begin < text.size() && text[begin - 1] == '\\';
}

/// Whether what stands at `at` goes on with a number or a formula. Then the words before it are no
/// unit at the end of a quantity.
bool formula_follows(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  if (at == text.size()) return false;
  const char c = text[at];
  if (is_digit(c) || is_letter(c) || (c == '.' && at + 1 < text.size() && is_digit(text[at + 1])))
    return true;
  if (c != '\\') return false;
  for (const std::string_view atom : {"\\frac", "\\sqrt", "\\pi"}) {
    if (text.substr(at).starts_with(atom)) return true;
  }
  return false;
}

/// "cm^2", or "m^{2}" where the letter is one of `letters`.
bool is_power_of_unit(std::string_view words, std::string_view letters) {
  const std::string_view unit = words.substr(0, words.find_first_of("^ "));
  const bool is_letter_alone = unit.size() == 1 && letters.find(unit) != std::string_view::npos;
  return unit.size() < words.size() && (is_letter_alone || is_unit_word(unit)) &&
         end_of_unit_exponent(words, unit.size()) == words.size();
}

class WordResolver {
 public:
  explicit WordResolver(int depth) : depth_(depth) {}

  const std::vector<std::string>& units() const { return units_; }

  std::string resolve(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      if (const std::size_t end = end_of_unit_fraction(text, at); end != at) {
        at = end;
        continue;
      }
      auto group = depth_ < kTextDepthMax ? styled_group_at(text, at) : std::nullopt;
      if (!group) {
        out_ += text[at++];
        continue;
      }
      WordResolver inside(depth_ + 1);
      group->inside = inside.resolve(group->inside);
      units_.insert(units_.end(), inside.units_.begin(), inside.units_.end());
      at = write(*group, text);
    }
    return std::move(out_);
  }

 private:
  /// \frac{\text{m}}{\text{s}} and \frac{m}{s} behind a quantity; `at` itself when there is none.
  std::size_t end_of_unit_fraction(std::string_view text, std::size_t at) const {
    constexpr std::string_view kFraction = "\\frac{";
    if (!text.substr(at).starts_with(kFraction) || !ends_with_quantity(out_, false)) return at;
    std::size_t open = at + kFraction.size() - 1;
    for (int part = 0; part < 2; ++part) {
      const std::size_t close =
          open < text.size() && text[open] == '{' ? closing_brace(text, open) : text.npos;
      if (close == text.npos || open + 1 == close) return at;
      const std::string_view inside = text.substr(open + 1, close - open - 1);
      const bool is_variable = part == 1 && (inside == "m" || inside == "g");
      if (is_variable || !is_part_of_unit(inside)) return at;
      open = close + 1;
    }
    return formula_follows(text, open) ? at : open;
  }

  /// "\text{apples}", "\mathrm{s}^2", "km": what is above or below the line of a unit's fraction.
  static bool is_part_of_unit(std::string_view text) {
    const auto group = styled_group_at(text, 0);
    if (group && group->is_text) return end_of_unit_exponent(text, group->end) == text.size();
    const std::string unit =
        group ? group->inside + std::string(text.substr(group->end)) : std::string(text);
    return may_be_unit(unit);
  }

  /// Returns where to go on.
  std::size_t write(const StyledGroup& group, std::string_view text) {
    const std::string words(trim(group.inside));
    if (words.empty()) {
      out_ += ' ';
    } else if (joins_list(group.inside)) {
      out_ += ", ";
    } else if (const std::string_view function = function_name(words); !function.empty()) {
      out_.append("\\").append(function).append(" ");
    } else if (drops_ordinal(words)) {
      return text.substr(group.end).starts_with("}") ? group.end + 1 : group.end;
    } else if (is_unit(group, words)) {
      return write_behind_quantity(group, words, text);
    } else {
      write_words(group);
    }
    return group.end;
  }

  /// "12^{\text{th}}" is the twelfth.
  bool drops_ordinal(const std::string& words) {
    if (words != "st" && words != "nd" && words != "rd" && words != "th") return false;
    for (const std::string_view before : {"^{", "^"}) {
      if (!out_.ends_with(before)) continue;
      out_.erase(out_.size() - before.size());
      return true;
    }
    return false;
  }

  bool is_unit(const StyledGroup& group, const std::string& words) const {
    if (!ends_with_quantity(out_, true)) return false;
    const bool is_letter_alone = words.size() == 1 && is_letter(words.front());
    // Of single letters those that units have; i, e and variables are part of the formula.
    const bool apart = group.inside.front() == ' ';
    const std::string_view letters = apart ? "msghLlNJWVAKCF" : "msghLl";
    const bool unit_letter = letters.find(words.front()) != std::string_view::npos;
    if (is_letter_alone) return unit_letter && (group.is_text || group.is_upright);
    if (group.is_text) return true;
    if (group.is_upright && words.starts_with("\\mu ")) return may_be_unit(words.substr(4));
    return group.is_upright && (apart || is_whole_unit(words) || words.find('/') != words.npos ||
                                is_power_of_unit(words, letters));
  }

  /// "million" as a factor, and units not at all.
  std::size_t write_behind_quantity(const StyledGroup& group, const std::string& words,
                                    std::string_view text) {
    const LeadingScale scale = leading_scale(words);
    const std::string rest = words.substr(scale.end);
    if (changes_quantity(rest) || (!scale.latex.empty() && formula_follows(text, group.end))) {
      write_words(group);
      return group.end;
    }
    out_ += scale.latex;
    return rest.empty() ? group.end : write_unit(group, rest, text);
  }

  std::size_t write_unit(const StyledGroup& group, const std::string& words,
                         std::string_view text) {
    std::size_t end = end_of_unit_exponent(text, group.end);
    std::vector<std::string> units{words};
    // m/s, kg m^2: units of units.
    for (std::size_t next = end; next < text.size();) {
      while (next < text.size() && text[next] == ' ') ++next;
      for (const std::string_view joint : {"/", "\\cdot", "\\times"}) {
        if (text.substr(next).starts_with(joint)) next += joint.size();
      }
      while (next < text.size() && text[next] == ' ') ++next;
      const auto further = next < text.size() ? styled_group_at(text, next) : std::nullopt;
      if (!further || joins_list(further->inside)) break;
      units.push_back(further->inside);
      end = next = end_of_unit_exponent(text, further->end);
    }
    if (formula_follows(text, end)) {
      write_words(group);
      return group.end;
    }
    drop_prefix_of_unit();
    units_.insert(units_.end(), units.begin(), units.end());
    if (words.ends_with(",")) out_ += ",";
    return end;
  }

  /// "5\,\mu\text{m}" has micrometers.
  void drop_prefix_of_unit() {
    constexpr std::string_view kMicro = "\\mu";
    const std::string_view before = trim(out_);
    if (!before.ends_with(kMicro)) return;
    const std::string_view number = before.substr(0, before.size() - kMicro.size());
    if (ends_with_quantity(number, false)) out_ = std::string(number);
  }

  void write_words(const StyledGroup& group) {
    const bool apart = group.is_text || trim(group.inside).size() > 1;
    if (apart && !out_.empty() && out_.back() != ' ' &&
        (is_letter(out_.back()) || is_digit(out_.back())))
      out_ += ' ';
    if (ends_with_command(out_) && !group.inside.empty() && is_letter(group.inside.front()))
      out_ += ' ';  // "\in\mathbb{R}"
    out_ += group.inside;
    if (group.is_text && group.inside.size() > 1) out_ += ' ';
  }

  const int depth_;
  std::string out_;
  std::vector<std::string> units_;  // what is left out
};

/// The word `word` alone between members, as a comma.
void replace_joining_word(std::string& text, std::string_view word) {
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at)) {
    const std::size_t end = at + word.size();
    const bool alone = at > 0 && end < text.size() && !is_letter(text[at - 1]) &&
                       text[at - 1] != '\\' && !is_letter(text[end]);
    // "12or13" has no blanks.
    const bool joins = alone && (text[at - 1] == ' ' || is_digit(text[at - 1]) ||
                                 text[at - 1] == ')' || text[at - 1] == ',');
    if (joins) text.replace(at, word.size(), ",");
    at += joins ? 1 : word.size();
  }
}

/// Where a member of a list, a bracket or a side of a relation begins.
bool begins_member(std::string_view before) {
  before = trim(before);
  return before.empty() || std::string_view("([{,=<>").find(before.back()) != before.npos;
}

/// "negative 5" is -5, "USD 5" is 5.
void write_words_before_numbers(std::string& text) {
  static constexpr Replacement kWords[] = {
      {"negative ", "-"}, {"Negative ", "-"}, {"minus ", "-"}, {"Minus ", "-"}, {"USD", ""},
      {"EUR", ""},        {"GBP", ""},        {"INR", ""},     {"CNY", ""},     {"RMB", ""},
      {"US", ""},         {"Rs.", ""},        {"Rs", ""}};
  for (const auto& [word, sign] : kWords) {
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
      const std::size_t next = std::min(text.find_first_not_of(' ', at + word.size()), text.size());
      const bool is_number =
          next < text.size() && (is_digit(text[next]) || text[next] == '.' ||
                                 (!sign.empty() && (text[next] == '\\' || text[next] == '(')));
      if (is_number && begins_member(std::string_view(text).substr(0, at)))
        text.replace(at, next - at, sign);
    }
  }
}

/// Commas between members, and none without a member.
void write_lists_with_commas(std::string& text) {
  replace_all(text, ";", ", ");  // "5;1,250" has two members
  replace_joining_word(text, "and");
  replace_joining_word(text, "or");
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',') {
      const std::string_view before = trim(out);
      if (before.ends_with(',') || before.empty()) continue;
    }
    out += text[i];
  }
  text = out;
}

}  // namespace

std::string plain_math(std::string_view answer) { return read_math(answer).text; }

ReadMath read_math(std::string_view answer) {
  std::string text = with_latex_signs(with_ascii_forms(trim(answer)));
  std::replace(text.begin(), text.end(), '\n', ' ');  // line ends have their own meaning below
  drop_delimiters(text);
  replace_command(text, "per cent", "percent");
  drop_spaced_thousands(text);
  drop_looks(text);
  write_degrees(text);
  WordResolver words(0);
  text = words.resolve(text);
  write_words_before_numbers(text);
  std::vector<std::string> units = words.units();
  text = without_unit_words(text, units);
  write_lists_with_commas(text);
  text.erase(
      std::unique(text.begin(), text.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
      text.end());
  std::string_view rest = trim(text);
  while (!rest.empty() && (rest.back() == '.' || rest.back() == ',' || rest.back() == ':'))
    rest = trim(rest.substr(0, rest.size() - 1));
  return {std::string(rest), std::move(units)};
}

}  // namespace rl
