#include "rl/reward/set_notation.h"

#include <algorithm>
#include <vector>

#include "rl/reward/characters.h"
#include "rl/reward/latex_text.h"
#include "rl/reward/math_relation.h"
#include "rl/reward/number_text.h"

namespace rl {
namespace {

/// Whether one comma and no other bracket of this kind stands between two ends.
bool are_two_ends(std::string_view inside) {
  const std::vector<std::string> parts = split_parts(inside, ",");
  const bool has_blank = std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
    return part.find_first_not_of(' ') == part.npos;
  });
  return parts.size() == 2 && !has_blank &&
         std::count(inside.begin(), inside.end(), '(') ==
             std::count(inside.begin(), inside.end(), ')');
}

/// Whether no brace closes that did not open inside: else these are two sets.
bool is_one_group(std::string_view inside) {
  int depth = 0;
  return std::all_of(inside.begin(), inside.end(), [&](char c) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    return depth >= 0;
  });
}

/// "x", "\theta".
bool is_single_symbol(std::string_view text) {
  if (text.size() == 1) return is_letter(text.front());
  return text.starts_with('\\') && text.size() > 2 &&
         std::all_of(text.begin() + 1, text.end(), is_letter);
}

/// "x" of "x" and "x \in R".
std::string_view symbol_of_members(std::string_view text) {
  for (const std::string_view real : {"\\in R", "\\in\\mathbb{R}", "\\in \\mathbb{R}"}) {
    if (text.ends_with(real)) text = trim(text.substr(0, text.size() - real.size()));
  }
  return is_single_symbol(text) ? text : std::string_view();
}

bool is_inequality_of(std::string_view symbol, std::string_view condition) {
  const RelationChain chain = relation_chain(condition);
  return !chain.relations.empty() &&
         std::find(chain.relations.begin(), chain.relations.end(), Relation::kEqual) ==
             chain.relations.end() &&
         std::find(chain.sides.begin(), chain.sides.end(), symbol) != chain.sides.end();
}

}  // namespace

std::string with_round_brackets(std::string text) {
  for (std::size_t open = text.find_first_of("[]"); open != text.npos;) {
    const std::size_t close = text.find_first_of("[]", open + 1);
    if (close == text.npos) break;
    const bool turns = text[open] == ']' || text[close] == '[';
    const bool is_interval =
        turns && are_two_ends(std::string_view(text).substr(open + 1, close - open - 1));
    if (is_interval && text[open] == ']') text[open] = '(';
    if (is_interval && text[close] == '[') text[close] = ')';
    open = text.find_first_of("[]", turns && !is_interval ? close : close + 1);
  }
  return text;
}

std::optional<std::string> condition_of_set(std::string_view text) {
  text = trim(text);
  for (const std::string_view escape : {"\\", ""}) {
    const std::string open = std::string(escape) + "{", close = std::string(escape) + "}";
    if (text.size() <= open.size() + close.size() || !text.starts_with(open) ||
        !text.ends_with(close))
      continue;
    const std::string_view inside =
        text.substr(open.size(), text.size() - open.size() - close.size());
    const std::size_t bar = inside.find_first_of("|:");
    if (bar == inside.npos || !is_one_group(inside)) return std::nullopt;
    const std::string_view symbol = symbol_of_members(trim(inside.substr(0, bar))),
                           conditions = trim(inside.substr(bar + 1));
    const std::vector<std::string> parts = split_parts(conditions, ",");
    const bool are_inequalities =
        !symbol.empty() && std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
          return is_inequality_of(symbol, part);
        });
    if (are_inequalities) return std::string(conditions);
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace rl
