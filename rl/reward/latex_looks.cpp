#include "rl/reward/latex_looks.h"

#include <string_view>
#include <utility>

#include "rl/reward/characters.h"
#include "rl/reward/latex_text.h"

namespace rl {
namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

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

/// Calls `replaced` with where each command `name` begins and where its name and the blanks behind
/// it end; it returns where to go on.
template <class Replaced>
void for_each_command(std::string& text, std::string_view name, const Replaced& replaced) {
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at)) {
    std::size_t end = at + name.size();
    if (end < text.size() && is_letter(text[end])) {
      at = end;
      continue;
    }
    while (end < text.size() && text[end] == ' ') ++end;
    at = replaced(at, end);
  }
}

/// Where "{red}" and "[rgb]{1,0,0}" close; npos: there is no argument at `at`.
std::size_t end_of_argument(const std::string& text, std::size_t at) {
  if (at < text.size() && text[at] == '[') {
    const std::size_t close = text.find(']', at);
    if (close == text.npos) return text.npos;
    at = close + 1;
  }
  return at < text.size() && text[at] == '{' ? closing_brace(text, at) : text.npos;
}

/// "\color{red}": the command with its argument.
void drop_with_argument(std::string& text, std::string_view name) {
  for_each_command(text, name, [&text](std::size_t at, std::size_t open) {
    const std::size_t close = end_of_argument(text, open);
    if (close == text.npos) return open;
    text.erase(at, close + 1 - at);
    return at;
  });
}

/// "\underline{5}" is 5.
void drop_around_argument(std::string& text, std::string_view name) {
  for_each_command(text, name, [&text](std::size_t at, std::size_t open) {
    const std::size_t close = end_of_argument(text, open);
    if (close == text.npos) return open;
    text.erase(close, 1);
    text.erase(at, open + 1 - at);
    return at;
  });
}

/// "\textcolor{red}{5}" is "\underline{5}" without the line.
void drop_colours(std::string& text) {
  for (const std::string_view name : {"\\textcolor", "\\colorbox"}) {
    for_each_command(text, name, [&text](std::size_t at, std::size_t open) {
      const std::size_t close = end_of_argument(text, open);
      if (close == text.npos) return open;
      text.replace(at, close + 1 - at, "\\underline");
      return at;
    });
  }
  for (const std::string_view name :
       {"\\color", "\\phantom", "\\hphantom", "\\vphantom", "\\hspace"})
    drop_with_argument(text, name);
  for (const std::string_view name : {"\\underline", "\\uline", "\\emph"})
    drop_around_argument(text, name);
}

/// "{5 \choose 2}" is "\binom{5}{2}"; without braces all of the formula is above or below.
void write_binomials(std::string& text) {
  constexpr std::string_view kChoose = "\\choose";
  bool is_wrapped = false;
  for_each_command(text, kChoose, [&](std::size_t at, std::size_t end) {
    std::size_t open = at, depth = 1;
    while (open > 0 && depth > 0) {
      --open;
      if (text[open] == '}') ++depth;
      if (text[open] == '{') --depth;
    }
    if (depth > 0 && !is_wrapped) {
      is_wrapped = true;
      text = "{" + text + "}";
      return std::size_t{1};
    }
    if (depth > 0) return end;
    const std::size_t close = closing_brace(text, open);
    if (close == text.npos) return end;
    text.replace(close, 1, "}}");
    text.replace(at, end - at, "}{");
    text.insert(open, "{\\binom");
    return at;
  });
}

/// "\pi\,r" is no "\pir".
void write_spaces_between_letters(std::string& text) {
  constexpr std::string_view kSpace = "\\,";
  for (std::size_t at = text.find(kSpace, 1); at != text.npos; at = text.find(kSpace, at + 1)) {
    const std::size_t end = at + kSpace.size();
    if (end < text.size() && is_letter(text[at - 1]) && is_letter(text[end]))
      text.replace(at, kSpace.size(), " ");
  }
}

}  // namespace

void drop_looks(std::string& text) {
  drop_doubled_backslashes(text);
  drop_colours(text);
  write_styles_with_braces(text);
  replace_all(text, "\\left.", "");
  replace_all(text, "\\right.", "");
  for (const std::string_view command :
       {"\\left",        "\\middle",       "\\right", "\\displaystyle", "\\textstyle",
        "\\limits",      "\\big",          "\\Big",   "\\bigg",         "\\Bigg",
        "\\bigl",        "\\bigr",         "\\Bigl",  "\\Bigr",         "\\biggl",
        "\\biggr",       "\\rm",           "\\bf",    "\\tiny",         "\\scriptsize",
        "\\scriptstyle", "\\footnotesize", "\\small", "\\normalsize",   "\\large",
        "\\Large",       "\\LARGE",        "\\huge",  "\\Huge",         "\\bfseries",
        "\\boldmath"})
    replace_command(text, command, "");
  replace_all(text, "\\\\", "\n");  // the end of a matrix's row, of which "\\ " is no part
  write_spaces_between_letters(text);
  for (const std::string_view space : {"\\!", "\\,", "\\;", "\\:", "\\ ", "~"})
    replace_all(text, space, space == "\\!" || space == "\\," ? "" : " ");
  for (const std::string_view space : {"\\quad", "\\qquad", "\\enspace", "\\thinspace"})
    replace_command(text, space, " ");
  for (const std::string_view sign : {"\\%", "%"}) replace_all(text, sign, "");
  static constexpr Replacement kNames[] = {
      {"\\dfrac", "\\frac"},   {"\\tfrac", "\\frac"},   {"\\cfrac", "\\frac"},
      {"\\dbinom", "\\binom"}, {"\\tbinom", "\\binom"}, {"\\neq", "\\ne"},
      {"\\leq", "\\le"},       {"\\geq", "\\ge"},       {"\\leqslant", "\\le"},
      {"\\geqslant", "\\ge"},  {"\\lt", "<"},           {"\\gt", ">"},
      {"\\lbrack", "["},       {"\\rbrack", "]"},       {"\\lVert", "\\|"},
      {"\\rVert", "\\|"},      {"\\Vert", "\\|"},       {"\\lbrace", "\\{"},
      {"\\rbrace", "\\}"},     {"\\langle", "("},       {"\\rangle", ")"},
      {"\\lvert", "|"},        {"\\rvert", "|"},        {"\\vert", "|"},
      {"\\tg", "\\tan"},       {"\\ctg", "\\cot"},      {"\\cotg", "\\cot"},
      {"\\cosec", "\\csc"},    {"\\arctg", "\\arctan"}, {"\\pounds", ""},
      {"\\textsterling", ""},  {"\\euro", ""},          {"\\texteuro", ""},
      {"\\textdollar", ""},    {"\\rupee", ""},         {"\\mid", "|"},
      {"\\colon", ":"}};
  for (const auto& [from, to] : kNames) replace_command(text, from, to);
  write_binomials(text);
}

}  // namespace rl
