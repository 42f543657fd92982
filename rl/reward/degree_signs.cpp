#include "rl/reward/degree_signs.h"

#include <string_view>

#include "rl/reward/characters.h"
#include "rl/reward/latex_text.h"
#include "rl/reward/math_units.h"
#include "rl/reward/number_text.h"
#include "rl/reward/styled_group.h"

namespace rl {
namespace {

constexpr std::string_view kDegreeMark = "\x01";  // of an angle, until all signs are read

/// "90\circ" has degrees, for which `mark` comes; "f \circ g" is a composition, and "\deg f" the
/// degree of a polynomial.
void write_bare_signs(std::string& text, std::string_view sign, std::string_view mark) {
  for (std::size_t at = text.find(sign); at != text.npos; at = text.find(sign, at)) {
    std::size_t next = at + sign.size();
    while (next < text.size() && text[next] == ' ') ++next;
    const bool composes =
        next < text.size() && (is_letter(text[next]) || text[next] == '\\' || text[next] == '(');
    if (composes)
      at = next;
    else
      text.replace(at, sign.size(), mark);
  }
}

/// "\sin", "\operatorname{tan}", "cos 60"; powers of e, whose exponents are angles of numbers in
/// the plane.
bool names_function_of_angles(std::string_view text) {
  if (text.find("e^") != text.npos) return true;
  for (const std::string_view name :
       {"sin", "cos", "tan", "cot", "sec", "csc", "cis", "exp", "tg", "ctg", "cotg", "cosec"}) {
    for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      const bool begins = at == 0 || !is_letter(text[at - 1]);
      if (begins && (end == text.size() || !is_letter(text[end]))) return true;
    }
  }
  return false;
}

bool is_degree_word(std::string_view word) {
  return word == "degrees" || word == "degree" || word == "deg";
}

/// The words behind quantities, in \text{} or plain, as marks.
std::string with_marks_for_words(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    if (const auto group = styled_group_at(text, at)) {
      if (is_degree_word(trim(group->inside))) end = group->end;
    } else if (is_letter(text[at]) && (at == 0 || text[at - 1] != '\\')) {
      while (end < text.size() && is_letter(text[end])) ++end;
      if (!is_degree_word(text.substr(at, end - at))) {
        out += text.substr(at, end - at);
        at = end;
        continue;
      }
    }
    const bool is_degrees = end > at && ends_with_quantity(out, true);
    out += is_degrees ? kDegreeMark : text.substr(at, 1);
    at = is_degrees ? end : at + 1;
  }
  return out;
}

/// "30^o" and "30^{\text{o}}": a small letter that looks like the sign, behind a digit.
void write_letters_as_signs(std::string& text) {
  for (const std::string_view sign :
       {"^{\\text{o}}", "^\\text{o}", "^{\\mathrm{o}}", "^\\mathrm{ o}", "^\\mathrm{o}",
        "^{\\textrm{o}}", "^{o}", "^o"}) {
    for (std::size_t at = text.find(sign, 1); at != text.npos; at = text.find(sign, at + 1)) {
      const std::size_t end = at + sign.size();
      const bool is_sign = is_digit(text[at - 1]) && (end == text.size() || !is_letter(text[end]));
      if (is_sign) text.replace(at, sign.size(), "^\\circ ");
    }
  }
}

/// "25^\circ C".
void drop_temperatures(std::string& text) {
  for (const std::string_view degree :
       {"^\\circ", "^{\\circ}", "\\circ", "^\\degree", "\\degree"}) {
    for (const std::string_view scale :
         {"C", " C", "\\mathrm{C}", "\\text{C}", "\\mathrm{ C}", "\\text{ C}", "F", " F",
          "\\mathrm{F}", "\\text{F}", "\\mathrm{ F}", "\\text{ F}"})
      replace_all(text, std::string(degree) + std::string(scale), "");
  }
}

}  // namespace

void write_degrees(std::string& text) {
  replace_command(text, "\\textdegree", "\\degree ");
  write_letters_as_signs(text);
  drop_temperatures(text);
  const bool has_angles = names_function_of_angles(text);
  const std::string_view mark = has_angles ? kDegreeMark : "";
  for (const std::string_view sign :
       {"^\\circ", "^{\\circ}", "^ \\circ", "^{ \\circ}", "^\\degree", "^{\\degree}", "\\degree"})
    replace_command(text, sign, mark);
  write_bare_signs(text, "\\circ", mark);
  write_bare_signs(text, "\\deg", mark);
  if (has_angles) text = with_marks_for_words(text);
  replace_all(text, kDegreeMark, "\\degree ");
}

}  // namespace rl
