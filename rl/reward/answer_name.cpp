#include "rl/reward/answer_name.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

#include "rl/reward/characters.h"
#include "rl/reward/latex_text.h"
#include "rl/reward/math_relation.h"

namespace rl {
namespace {

constexpr std::size_t kPointsMax = 3;  // of "AB" and "\angle ABC"

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }

std::string without_any_blanks(std::string_view text) {
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out),
               [](char c) { return c != ' ' && c != '\n'; });
  return out;
}

/// "\angle", or nothing.
std::string_view figure_at(std::string_view text) {
  for (const std::string_view figure : {"m\\angle", "\\angle", "\\triangle", "\\overline"}) {
    if (text.starts_with(figure)) return figure;
  }
  return {};
}

/// One symbol, perhaps with an index and arguments. A value.
struct Name {
  std::string figure, symbol, index, arguments;

  /// nullopt: words, sums and whatever else has no one symbol.
  static std::optional<Name> parse(std::string_view written) {
    const std::string text = without_any_blanks(written);
    Name name;
    name.figure = figure_at(text);
    std::string_view rest = std::string_view(text).substr(name.figure.size());
    if (!name.figure.empty() && rest.starts_with('{') && rest.ends_with('}'))
      rest = rest.substr(1, rest.size() - 2);
    name.take_symbol(rest);
    name.take_index(rest);
    if (rest.starts_with('(') && rest.ends_with(')')) {
      name.arguments = rest;
      rest = {};
    }
    if (name.symbol.empty() || !rest.empty()) return std::nullopt;
    return name;
  }

 private:
  void take_symbol(std::string_view& rest) {
    std::size_t end = rest.starts_with('\\') ? 1 : 0;
    const bool is_command = end == 1;
    while (end < rest.size() && (is_command ? is_letter(rest[end]) : is_upper(rest[end]))) ++end;
    if (end == 0 && !rest.empty() && is_letter(rest.front())) end = 1;
    if (!is_command && end > kPointsMax) end = 0;
    symbol = rest.substr(0, end);
    rest.remove_prefix(end);
  }

  void take_index(std::string_view& rest) {
    if (!rest.starts_with('_') || rest.size() < 2) return;
    const std::size_t close = rest[1] == '{' ? closing_brace(rest, 1) : 1;
    if (close == rest.npos) return;
    index = rest[1] == '{' ? rest.substr(2, close - 2) : rest.substr(1, 1);
    rest.remove_prefix(close + 1);
  }
};

/// "AB" is "BA", "n" may be "N".
std::string comparable(std::string symbol) {
  if (symbol.size() == 1) symbol[0] = static_cast<char>(std::tolower(symbol[0]));
  if (!symbol.starts_with('\\')) std::sort(symbol.begin(), symbol.end());
  return symbol;
}

/// "(1)" and "(2)", "(A)" and "(B)". Small letters may stand for each other.
bool are_different_arguments(const std::string& a, const std::string& b) {
  const auto is_value = [](const std::string& text) {
    return text.size() > 2 && std::all_of(text.begin() + 1, text.end() - 1, [](char c) {
             return is_digit(c) || is_upper(c) || c == '-' || c == '.';
           });
  };
  return a != b && is_value(a) && is_value(b);
}

bool are_different(const Name& a, const Name& b) {
  if (a.figure != b.figure || a.arguments.empty() != b.arguments.empty()) return false;
  if (comparable(a.symbol) != comparable(b.symbol)) return true;
  if (!a.index.empty() && !b.index.empty() && a.index != b.index) return true;
  return are_different_arguments(a.arguments, b.arguments);
}

/// "(x,y)".
bool is_tuple_of_letters(const std::string& name) {
  if (!name.starts_with('(') || !name.ends_with(')')) return false;
  const auto parts = split_parts(name.substr(1, name.size() - 2), ",");
  return parts.size() > 1 && std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
           return part.size() == 1 && is_lower(part.front());
         });
}

/// What stands before the value of an equation.
std::optional<std::string> name_of(std::string_view text) {
  const RelationChain chain = relation_chain(text);
  if (chain.sides.size() != 2 || chain.relations.front() != Relation::kEqual ||
      !is_answer_name(chain.sides.front()))
    return std::nullopt;
  return without_any_blanks(chain.sides.front());
}

}  // namespace

bool have_different_names(std::string_view a, std::string_view b) {
  const auto left = name_of(a), right = name_of(b);
  if (!left || !right || *left == *right) return false;
  if (is_tuple_of_letters(*left) && is_tuple_of_letters(*right)) return true;
  const auto name_a = Name::parse(*left), name_b = Name::parse(*right);
  return name_a && name_b && are_different(*name_a, *name_b);
}

}  // namespace rl
