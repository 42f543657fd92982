#include "rl/reward/math_answer.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "rl/reward/characters.h"
#include "rl/reward/expression.h"
#include "rl/reward/number_text.h"

namespace rl {
namespace {

constexpr int kAnswerDepthMax = 8;     // tuples in sets in unions
constexpr std::size_t kPartsMax = 64;  // of an unordered list, which is compared pair by pair
constexpr std::size_t kAnswerBytesMax = 2000;  // longer answers are compared as they stand

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Removes a command ("\left"), not the beginning of a longer one ("\leftarrow").
void replace_command(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at)) {
    const std::size_t end = at + from.size();
    if (end < text.size() && is_letter(text[end])) {
      at = end;
      continue;
    }
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

/// Where the brace that opens at `open` closes; npos when it doesn't.
std::size_t closing_brace(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;  // "\{" is a set's
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}' && --depth == 0) {
      return i;
    }
  }
  return text.npos;
}

/// \text{...} alone, or before a formula, is what it says; behind a number it is a unit.
void resolve_texts(std::string& text) {
  for (const std::string_view command :
       {"\\text", "\\mbox", "\\textbf", "\\textit", "\\textrm", "\\mathrm", "\\mathbf", "\\mathbb",
        "\\mathit", "\\operatorname", "\\hbox"}) {
    for (std::size_t at = text.find(command); at != text.npos; at = text.find(command, at)) {
      const std::size_t open = at + command.size();
      const std::size_t close =
          open < text.size() && text[open] == '{' ? closing_brace(text, open) : text.npos;
      if (close == text.npos) {
        at = open;
        continue;
      }
      const std::string inside(trim(std::string_view(text).substr(open + 1, close - open - 1)));
      const std::string before(trim(std::string_view(text).substr(0, at)));
      const bool joins = inside == "and" || inside == "or" || inside == ",";
      const bool is_unit = !before.empty() &&
                           (is_digit(before.back()) || before.back() == '}' ||
                            before.back() == ')' || before.back() == '.') &&
                           !joins;
      text.replace(at, close + 1 - at, is_unit ? std::string() : joins ? std::string(",") : inside);
    }
  }
}

/// Units and fill-words behind a number: the ones that verl's DAPO scorer drops.
void drop_unit_words(std::string& text) {
  for (const std::string_view word :
       {"square", "ways",    "integers", "dollars",  "mph",       "inches", "hours",   "hour",
        "km",     "units",   "points",   "feet",     "minutes",   "minute", "seconds", "digits",
        "cents",  "degrees", "degree",   "cm",       "gm",        "kg",     "pounds",  "meters",
        "metres", "meals",   "edges",    "students", "multiples", "percent"}) {
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
      const std::size_t end = at + word.size();
      const bool stands_alone = at > 0 && !is_letter(text[at - 1]) && text[at - 1] != '\\' &&
                                (end == text.size() || !is_letter(text[end]));
      const std::string_view before = trim(std::string_view(text).substr(0, at));
      if (stands_alone && !before.empty() && (is_digit(before.back()) || before.back() == '}'))
        text.erase(at--, word.size());
    }
  }
}

/// "1,234" is a number, "1,23" and "(1,234)" are lists.
void drop_thousands_commas(std::string& text) {
  if (text.find_first_of("([{") != text.npos && text.find("\\frac") == text.npos) return;
  for (std::size_t at = text.find(','); at != text.npos; at = text.find(',', at + 1)) {
    std::size_t before = at, after = at + 1;
    while (before > 0 && is_digit(text[before - 1])) --before;
    while (after < text.size() && is_digit(text[after])) ++after;
    const bool first = before == 0 || (text[before - 1] != ',' && text[before - 1] != '.');
    if (first && at > before && at - before <= 3 && after - at == 4 && text[before] != '0') {
      text.erase(at--, 1);
      // Further groups: "1,234,567" is now "1234,567".
      for (std::size_t next = at + 4; next + 3 < text.size() && text[next] == ','; next += 3) {
        std::size_t end = next + 1;
        while (end < text.size() && is_digit(text[end])) ++end;
        if (end - next != 4) break;
        text.erase(next, 1);
      }
    }
  }
}

std::string without_outer(std::string text, std::string_view open, std::string_view close) {
  if (text.size() >= open.size() + close.size() && text.starts_with(open) &&
      text.ends_with(close)) {
    text = text.substr(open.size(), text.size() - open.size() - close.size());
  }
  return std::string(trim(text));
}

/// The parts between separators at the top level of brackets. A half-open interval's brackets count
/// as a pair.
std::vector<std::string> split_parts(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (depth == 0 && text.substr(i).starts_with(separator)) {
      parts.emplace_back();
      i += separator.size() - 1;
      continue;
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    parts.back() += c;
  }
  for (std::string& part : parts) part = std::string(trim(part));
  return parts;
}

bool same(const std::string& a, const std::string& b, int depth);

bool same_in_order(const std::vector<std::string>& a, const std::vector<std::string>& b,
                   int depth) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [depth](const auto& x, const auto& y) { return same(x, y, depth + 1); });
}

bool same_in_any_order(const std::vector<std::string>& a, std::vector<std::string> b, int depth) {
  if (a.size() != b.size() || a.size() > kPartsMax) return false;
  for (const std::string& part : a) {
    const auto found = std::find_if(
        b.begin(), b.end(), [&](const std::string& other) { return same(part, other, depth + 1); });
    if (found == b.end()) return false;
    b.erase(found);
  }
  return true;
}

struct Bracketed {
  std::string open, close, inside;
};

/// "(a, b]" or "\{a, b\}" when the brackets enclose all of it.
std::optional<Bracketed> bracketed(const std::string& text) {
  if (text.starts_with("\\{") && text.ends_with("\\}") && text.size() >= 4)
    return Bracketed{"{", "}", text.substr(2, text.size() - 4)};
  if (text.size() < 2 || std::string_view("([{").find(text.front()) == std::string_view::npos ||
      std::string_view(")]}").find(text.back()) == std::string_view::npos)
    return std::nullopt;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::string_view("([{").find(text[i]) != std::string_view::npos) ++depth;
    if (std::string_view(")]}").find(text[i]) != std::string_view::npos && --depth == 0 &&
        i + 1 < text.size())
      return std::nullopt;
  }
  if (depth != 0) return std::nullopt;
  return Bracketed{text.substr(0, 1), text.substr(text.size() - 1),
                   text.substr(1, text.size() - 2)};
}

/// The rows of a matrix: \begin{pmatrix} a & b \\ c & d \end{pmatrix}.
std::optional<std::vector<std::string>> matrix_rows(const std::string& text) {
  for (const std::string_view kind : {"pmatrix", "bmatrix", "matrix", "vmatrix", "array"}) {
    const std::string begin = "\\begin{" + std::string(kind) + "}",
                      end = "\\end{" + std::string(kind) + "}";
    if (!text.starts_with(begin) || !text.ends_with(end)) continue;
    return split_parts(
        std::string_view(text).substr(begin.size(), text.size() - begin.size() - end.size()), "\n");
  }
  return std::nullopt;
}

bool same_matrix(const std::vector<std::string>& a, const std::vector<std::string>& b, int depth) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [depth](const auto& x, const auto& y) {
           return same_in_order(split_parts(x, "&"), split_parts(y, "&"), depth);
         });
}

/// "\pm 2" and "1 \pm \sqrt 2" as both.
std::optional<std::vector<std::string>> both_signs(const std::string& text) {
  const std::size_t at = text.find("\\pm");
  if (at == text.npos || text.find("\\pm", at + 1) != text.npos) return std::nullopt;
  return std::vector<std::string>{text.substr(0, at) + "+" + text.substr(at + 3),
                                  text.substr(0, at) + "-" + text.substr(at + 3)};
}

std::vector<std::string> members(const std::string& text) {
  std::vector<std::string> all;
  for (const std::string& part : split_parts(text, ",")) {
    if (const auto signs = both_signs(part)) {
      all.insert(all.end(), signs->begin(), signs->end());
    } else {
      all.push_back(part);
    }
  }
  return all;
}

bool same_text(std::string_view a, std::string_view b) {
  const auto visible = [](std::string_view text) {
    std::string out;
    for (const char c : text) {
      if (!std::isspace(static_cast<unsigned char>(c)))
        out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return out;
  };
  if (a == b) return true;
  // Case matters for variables, not for words.
  const bool words = a.size() > 1 && std::all_of(a.begin(), a.end(),
                                                 [](char c) { return is_letter(c) || c == ' '; });
  if (words) return visible(a) == visible(b);
  const auto squeezed = [](std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool blank = std::isspace(static_cast<unsigned char>(text[i])) != 0;
      // "1 0" is not 10.
      if (!blank ||
          (i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1])))
        out += text[i];
    }
    return out;
  };
  return squeezed(a) == squeezed(b);
}

bool same_brackets(const Bracketed& a, const Bracketed& b, int depth) {
  const auto left = members(a.inside), right = members(b.inside);
  if (a.open == "{" && b.open == "{") return same_in_any_order(left, right, depth);
  if (left.size() < 2 && right.size() < 2)
    return same(a.inside, b.inside, depth + 1);  // (C) and (5): grouping
  return a.open == b.open && a.close == b.close && same_in_order(left, right, depth);
}

bool same_equation(const std::vector<std::string>& a, const std::vector<std::string>& b,
                   int depth) {
  if (same_in_order(a, b, depth)) return true;
  return same_in_order(a, {b[1], b[0]}, depth);
}

bool same(const std::string& a, const std::string& b, int depth) {
  if (same_text(a, b)) return true;
  if (depth > kAnswerDepthMax || a.empty() || b.empty()) return false;
  const auto rows_a = matrix_rows(a), rows_b = matrix_rows(b);
  if (rows_a || rows_b) return rows_a && rows_b && same_matrix(*rows_a, *rows_b, depth);
  const auto equation_a = split_parts(a, "="), equation_b = split_parts(b, "=");
  if (equation_a.size() == 2 && equation_b.size() == 2)
    return same_equation(equation_a, equation_b, depth);
  if (equation_a.size() != equation_b.size()) return false;
  const auto union_a = split_parts(a, "\\cup"), union_b = split_parts(b, "\\cup");
  if (union_a.size() > 1 || union_b.size() > 1) return same_in_any_order(union_a, union_b, depth);
  const auto list_a = members(a), list_b = members(b);
  if (list_a.size() > 1 || list_b.size() > 1) return same_in_any_order(list_a, list_b, depth);
  const auto brackets_a = bracketed(a), brackets_b = bracketed(b);
  if (brackets_a && brackets_b && same_brackets(*brackets_a, *brackets_b, depth)) return true;
  // "(C)" is the choice "C".
  if (brackets_a && !brackets_b && brackets_a->open == "(" && is_letter(a[1]) &&
      same(brackets_a->inside, b, depth + 1))
    return true;
  if (brackets_b && !brackets_a && brackets_b->open == "(" && is_letter(b[1]) &&
      same(a, brackets_b->inside, depth + 1))
    return true;
  const auto value_a = read_expression(a), value_b = read_expression(b);
  return value_a && value_b && same_value(*value_a, *value_b).value_or(false);
}

}  // namespace

std::optional<std::string> last_boxed(std::string_view text) {
  std::size_t at = text.npos, length = 0;
  for (const std::string_view command : {"\\boxed", "\\fbox"}) {
    const std::size_t found = text.rfind(command);
    if (found == text.npos || (at != text.npos && found < at)) continue;
    at = found;
    length = command.size();
  }
  if (at == text.npos) return std::nullopt;
  std::size_t open = at + length;
  if (open < text.size() && text[open] == ' ' &&
      (open + 1 >= text.size() || text[open + 1] != '{')) {  // "\boxed 5$"
    const std::string_view rest = text.substr(open + 1);
    return std::string(trim(rest.substr(0, rest.find_first_of("$\n"))));
  }
  if (open < text.size() && text[open] == ' ') ++open;
  if (open >= text.size() || text[open] != '{') return std::nullopt;
  const std::size_t close = closing_brace(text, open);
  if (close == text.npos) return std::nullopt;
  return std::string(text.substr(open + 1, close - open - 1));
}

std::string normal_form(std::string_view answer) {
  std::string text(trim(answer));
  if (text.size() > kAnswerBytesMax) return text;
  std::replace(text.begin(), text.end(), '\n', ' ');  // line ends have a meaning of their own below
  replace_all(text, "−", "-");                        // U+2212
  replace_all(text, "π", "\\pi ");
  replace_all(text, "∞", "\\infty ");
  replace_all(text, "\\$", "");
  replace_all(text, "$", "");
  for (const std::string_view pair : {"\\(\\)", "\\[\\]"})
    text = without_outer(text, pair.substr(0, 2), pair.substr(2));
  if (text.starts_with("\\boxed{")) text = last_boxed(text).value_or(text);
  for (const std::string_view command :
       {"\\left", "\\right", "\\displaystyle", "\\big", "\\Big", "\\bigl", "\\bigr"})
    replace_command(text, command, "");
  replace_all(text, "\\\\", "\n");  // the end of a matrix's row, of which "\\ " is no part
  for (const std::string_view space : {"\\!", "\\,", "\\;", "\\:", "\\ ", "~"})
    replace_all(text, space, space == "\\!" || space == "\\," ? "" : " ");
  replace_command(text, "\\quad", " ");
  replace_command(text, "\\qquad", " ");
  for (const std::string_view fraction : {"\\dfrac", "\\tfrac", "\\cfrac"})
    replace_all(text, fraction, "\\frac");
  for (const std::string_view sign : {"^\\circ", "^{\\circ}", "\\circ", "°", "\\%", "%"})
    replace_all(text, sign, "");
  replace_command(text, "\\neq", "!=");
  replace_command(text, "\\leq", "\\le");
  replace_command(text, "\\geq", "\\ge");
  replace_command(text, "\\lbrace", "\\{");
  replace_command(text, "\\rbrace", "\\}");
  resolve_texts(text);
  drop_unit_words(text);
  text = trim(text);
  while (text.ends_with(".") || text.ends_with(","))
    text = trim(std::string_view(text).substr(0, text.size() - 1));
  replace_all(text, "{,}", ",");
  // "x = 5" answers with 5; "y = 2x" too, while "x + y = 5" is an equation.
  if (const auto sides = split_parts(text, "=");
      sides.size() == 2 && sides[0].size() <= 2 && !sides[0].empty() && is_letter(sides[0][0]))
    text = sides[1];
  if (const std::size_t in = text.find("\\in");
      in != text.npos && in <= 2 && in + 3 < text.size() && !is_letter(text[in + 3]))
    text = trim(std::string_view(text).substr(in + 3));
  drop_thousands_commas(text);
  return text;
}

bool equivalent(std::string_view a, std::string_view b) {
  const std::string left = normal_form(a), right = normal_form(b);
  if (left.size() > kAnswerBytesMax || right.size() > kAnswerBytesMax) return left == right;
  return same(left, right, 0);
}

}  // namespace rl
