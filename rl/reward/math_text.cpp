#include "rl/reward/math_text.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "rl/reward/characters.h"
#include "rl/reward/latex_text.h"
#include "rl/reward/math_units.h"
#include "rl/reward/number_text.h"
#include "rl/reward/quantity_words.h"
#include "rl/reward/unicode_text.h"

namespace rl {
namespace {

constexpr int kTextDepthMax = 8;                  // groups in groups
constexpr std::string_view kDegreeMark = "\x01";  // of an angle, until all signs are read

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

/// ",\!" and "{,}" before three digits are thousands separators and nothing else.
void drop_spaced_thousands(std::string& text) {
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

/// "\\frac" of a text that was escaped twice is no end of a matrix's row.
void drop_doubled_backslashes(std::string& text) {
  if (text.find("\\begin") != text.npos) return;
  for (const std::string_view command :
       {"left", "right", "frac", "dfrac", "tfrac", "sqrt", "pi", "text", "cdot", "times", "infty",
        "le", "ge", "leq", "geq"}) {
    const std::string once = "\\" + std::string(command);
    replace_command(text, "\\" + once, once);
  }
}

/// "90\\circ" has degrees, for which `mark` comes; "f \\circ g" is a composition.
void write_bare_circles(std::string& text, std::string_view mark) {
  constexpr std::string_view kCircle = "\\circ";
  for (std::size_t at = text.find(kCircle); at != text.npos; at = text.find(kCircle, at)) {
    std::size_t next = at + kCircle.size();
    while (next < text.size() && text[next] == ' ') ++next;
    const bool composes =
        next < text.size() && (is_letter(text[next]) || text[next] == '\\' || text[next] == '(');
    if (composes)
      at = next;
    else
      text.replace(at, kCircle.size(), mark);
  }
}

/// "{\\rm cm}" is "\\mathrm{cm}", and "\\mathbf i" is "\\mathbf{i}".
void write_styles_with_braces(std::string& text) {
  for (const auto& [from, to] :
       {Replacement{"{\\rm", "\\mathrm{"}, {"{\\bf", "\\mathbf{"}, {"{\\it", "\\mathit{"}}) {
    for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
      const std::size_t end = at + from.size();
      const bool is_whole = end < text.size() && !is_letter(text[end]);
      if (is_whole) text.replace(at, end - at, to);
    }
  }
  for (const std::string_view command :
       {"\\mathbf ", "\\mathbb ", "\\mathrm ", "\\boldsymbol ", "\\bm "}) {
    for (std::size_t at = text.find(command); at != text.npos; at = text.find(command, at + 1)) {
      const std::size_t letter = text.find_first_not_of(' ', at + command.size());
      if (letter != text.npos && is_letter(text[letter]))
        text.replace(at + command.size() - 1, letter + 2 - at - command.size(),
                     std::string("{") + text[letter] + "}");
    }
  }
}

/// "\\sin", "\\operatorname{tan}", "cos 60".
bool names_function_of_angles(std::string_view text) {
  for (const std::string_view name : {"sin", "cos", "tan", "cot", "sec", "csc"}) {
    for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      const bool begins = at == 0 || !is_letter(text[at - 1]);
      if (begins && (end == text.size() || !is_letter(text[end]))) return true;
    }
  }
  return false;
}

/// "90\\circ" and "90^{\\circ}" as "90\\degree" where a function of angles is, which needs to know
/// what its argument is measured in; else without the sign.
void write_degrees(std::string& text) {
  const bool has_angles = names_function_of_angles(text);
  for (const std::string_view sign :
       {"^\\circ", "^{\\circ}", "^ \\circ", "^{ \\circ}", "^\\degree", "^{\\degree}", "\\degree"})
    replace_command(text, sign, has_angles ? kDegreeMark : "");
  write_bare_circles(text, has_angles ? kDegreeMark : "");
  replace_all(text, kDegreeMark, "\\degree ");
}

void drop_looks(std::string& text) {
  drop_doubled_backslashes(text);
  write_styles_with_braces(text);
  replace_all(text, "\\left.", "");
  replace_all(text, "\\right.", "");
  for (const std::string_view command :
       {"\\left", "\\right", "\\displaystyle", "\\textstyle", "\\limits", "\\big", "\\Big",
        "\\bigg", "\\Bigg", "\\bigl", "\\bigr", "\\Bigl", "\\Bigr", "\\biggl", "\\biggr", "\\rm",
        "\\bf"})
    replace_command(text, command, "");
  replace_all(text, "\\\\", "\n");  // the end of a matrix's row, of which "\\ " is no part
  for (const std::string_view space : {"\\!", "\\,", "\\;", "\\:", "\\ ", "~"})
    replace_all(text, space, space == "\\!" || space == "\\," ? "" : " ");
  for (const std::string_view space : {"\\quad", "\\qquad", "\\enspace", "\\thinspace"})
    replace_command(text, space, " ");
  for (const std::string_view degree :
       {"^\\circ", "^{\\circ}", "\\circ", "^\\degree", "\\degree"}) {
    for (const std::string_view scale :
         {"C", " C", "\\mathrm{C}", "\\text{C}", "\\mathrm{ C}", "\\text{ C}", "F", " F",
          "\\mathrm{F}", "\\text{F}", "\\mathrm{ F}", "\\text{ F}"})
      replace_all(text, std::string(degree) + std::string(scale), "");
  }
  for (const std::string_view sign : {"\\%", "%"}) replace_all(text, sign, "");
  write_degrees(text);
  static constexpr Replacement kNames[] = {
      {"\\dfrac", "\\frac"},   {"\\tfrac", "\\frac"},   {"\\cfrac", "\\frac"},
      {"\\dbinom", "\\binom"}, {"\\tbinom", "\\binom"}, {"\\neq", "\\ne"},
      {"\\leq", "\\le"},       {"\\geq", "\\ge"},       {"\\leqslant", "\\le"},
      {"\\geqslant", "\\ge"},  {"\\lt", "<"},           {"\\gt", ">"},
      {"\\lbrace", "\\{"},     {"\\rbrace", "\\}"},     {"\\langle", "("},
      {"\\rangle", ")"},       {"\\lvert", "|"},        {"\\rvert", "|"},
      {"\\vert", "|"},         {"\\mid", "|"},          {"\\colon", ":"}};
  for (const auto& [from, to] : kNames) replace_command(text, from, to);
}

bool is_function_name(std::string_view word) {
  constexpr std::string_view kFunctions =
      " sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc sinh cosh tanh log ln lg "
      "exp gcd lcm max min det ";
  return !word.empty() && word.find(' ') == word.npos &&
         kFunctions.find(" " + std::string(word) + " ") != kFunctions.npos;
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

/// A command that sets its argument in another way, with where it ends.
struct StyledGroup {
  bool is_text = false;     // words, not letters of a formula
  bool is_upright = false;  // what units are written in
  std::string inside;
  std::size_t end = 0;
};

std::optional<StyledGroup> styled_group_at(std::string_view text, std::size_t at) {
  constexpr std::string_view kText = " text mbox textbf textit textrm textsf textnormal hbox ";
  constexpr std::string_view kUpright = " mathrm operatorname ";
  constexpr std::string_view kLetters =
      " mathbf mathbb mathit mathcal mathsf mathfrak bold boldsymbol bm ";
  if (text[at] != '\\') return std::nullopt;
  std::size_t end = at + 1;
  while (end < text.size() && is_letter(text[end])) ++end;
  const std::string name = " " + std::string(text.substr(at + 1, end - at - 1)) + " ";
  StyledGroup group{.is_text = kText.find(name) != kText.npos,
                    .is_upright = kUpright.find(name) != kUpright.npos,
                    .inside = {},
                    .end = 0};
  if (name == "  " || (!group.is_text && !group.is_upright && kLetters.find(name) == kLetters.npos))
    return std::nullopt;
  if (end < text.size() && text[end] == '*') ++end;  // \operatorname*
  while (end < text.size() && text[end] == ' ') ++end;
  if (end >= text.size() || text[end] != '{') return std::nullopt;
  const std::size_t close = closing_brace(text, end);
  if (close == text.npos) return std::nullopt;
  group.inside = std::string(text.substr(end + 1, close - end - 1));
  group.end = close + 1;
  return group;
}

/// Whether what stands at `at` goes on with a number or a formula, so that the words before it are
/// no unit at the end of a quantity.
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
  /// \frac{\text{m}}{\text{s}} behind a quantity; `at` itself when there is none.
  std::size_t end_of_unit_fraction(std::string_view text, std::size_t at) const {
    constexpr std::string_view kFraction = "\\frac{";
    if (!text.substr(at).starts_with(kFraction) || !ends_with_quantity(out_, true)) return at;
    std::size_t open = at + kFraction.size() - 1;
    for (int part = 0; part < 2; ++part) {
      const std::size_t close =
          open < text.size() && text[open] == '{' ? closing_brace(text, open) : text.npos;
      if (close == text.npos || open + 1 == close) return at;
      const auto group = styled_group_at(text, open + 1);
      if (!group || !group->is_text || end_of_unit_exponent(text, group->end) != close) return at;
      open = close + 1;
    }
    return open;
  }

  /// Returns where to go on.
  std::size_t write(const StyledGroup& group, std::string_view text) {
    const std::string words(trim(group.inside));
    if (words.empty()) {
      out_ += ' ';
    } else if (joins_list(group.inside)) {
      out_ += ", ";
    } else if (is_function_name(words)) {
      out_ += "\\" + words + " ";
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
    return group.is_upright && (apart || is_unit_word(words) || words.find('/') != words.npos ||
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
    units_.insert(units_.end(), units.begin(), units.end());
    if (words.ends_with(",")) out_ += ",";
    return end;
  }

  void write_words(const StyledGroup& group) {
    const bool apart = group.is_text || trim(group.inside).size() > 1;
    if (apart && !out_.empty() && out_.back() != ' ' &&
        (is_letter(out_.back()) || is_digit(out_.back())))
      out_ += ' ';
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
  std::replace(text.begin(), text.end(), '\n', ' ');  // line ends have a meaning of their own below
  drop_delimiters(text);
  drop_spaced_thousands(text);
  drop_looks(text);
  WordResolver words(0);
  text = words.resolve(text);
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
