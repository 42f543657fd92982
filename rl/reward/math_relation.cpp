#include "rl/reward/math_relation.h"

#include <algorithm>
#include <utility>

#include "rl/reward/characters.h"
#include "rl/reward/latex_text.h"
#include "rl/reward/number_text.h"

namespace rl {
namespace {

constexpr std::size_t kNameBytesMax = 60;

struct RelationSign {
  std::string_view sign;
  Relation relation;
};

// Longer ones first.
constexpr RelationSign kRelationSigns[] = {
    {"\\ne", Relation::kNotEqual},   {"!=", Relation::kNotEqual},
    {"\\le", Relation::kLessEqual},  {"<=", Relation::kLessEqual},
    {"=<", Relation::kLessEqual},    {"\\ge", Relation::kGreaterEqual},
    {">=", Relation::kGreaterEqual}, {"=", Relation::kEqual},
    {"<", Relation::kLess},          {">", Relation::kGreater}};

const RelationSign* relation_at(std::string_view text, std::size_t at) {
  for (const RelationSign& one : kRelationSigns) {
    if (!text.substr(at).starts_with(one.sign)) continue;
    const std::size_t end = at + one.sign.size();
    const bool longer = one.sign.front() == '\\' && end < text.size() && is_letter(text[end]);
    if (!longer) return &one;
  }
  return nullptr;
}

Relation flipped(Relation relation) {
  switch (relation) {
    case Relation::kLess: return Relation::kGreater;
    case Relation::kLessEqual: return Relation::kGreaterEqual;
    case Relation::kGreater: return Relation::kLess;
    case Relation::kGreaterEqual: return Relation::kLessEqual;
    case Relation::kEqual:
    case Relation::kNotEqual: break;
  }
  return relation;
}

/// Without _1, _x and _{...}.
std::string without_subscripts(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    ++i;
    while (i < text.size() && text[i] == ' ') ++i;
    if (i < text.size() && text[i] == '{') {
      const std::size_t close = closing_brace(text, i);
      if (close == text.npos) return std::string(text);
      i = close;
    }
  }
  return out;
}

/// "f" of f(3) and f^{-1}(x).
std::string without_arguments(std::string_view text) {
  std::string out;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const std::string_view inverse : {"^{-1}", "^-1"}) {
      const std::string_view rest = text.substr(i);
      if (rest.starts_with(inverse) && rest.substr(inverse.size()).starts_with("("))
        i += inverse.size();
    }
    const bool called = !out.empty() && is_letter(out.back());
    if (text[i] == '(' && (depth > 0 || called)) ++depth;
    if (depth == 0) out += text[i];
    if (text[i] == ')' && depth > 0) --depth;
  }
  return depth == 0 ? out : std::string(text);
}

/// Where "\in" stands outside brackets; npos when it doesn't.
std::size_t find_membership(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth == 0 && text.substr(i).starts_with("\\in") &&
        (i + 3 == text.size() || !is_letter(text[i + 3])))
      return i;
  }
  return text.npos;
}

bool is_below(Relation relation) {
  return relation == Relation::kLess || relation == Relation::kLessEqual;
}
bool is_above(Relation relation) {
  return relation == Relation::kGreater || relation == Relation::kGreaterEqual;
}

}  // namespace

std::vector<Relation> flipped(std::vector<Relation> relations) {
  for (Relation& relation : relations) relation = flipped(relation);
  return relations;
}

RelationChain RelationChain::reversed() const {
  return {{sides.rbegin(), sides.rend()}, flipped({relations.rbegin(), relations.rend()})};
}

RelationChain relation_chain(std::string_view text) {
  RelationChain chain{std::vector<std::string>(1), {}};
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const RelationSign* sign = depth == 0 ? relation_at(text, i) : nullptr;
    if (sign != nullptr) {
      chain.relations.push_back(sign->relation);
      chain.sides.emplace_back();
      i += sign->sign.size() - 1;
      continue;
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    chain.sides.back() += c;
  }
  for (std::string& side : chain.sides) side = std::string(trim(side));
  return chain;
}

std::string without_index(std::string_view name) { return without_subscripts(trim(name)); }

bool is_answer_name(std::string_view text) {
  text = trim(text);
  if (text.empty() || text.size() > kNameBytesMax) return false;
  const std::string name = without_arguments(without_subscripts(text));
  bool letter = false;
  for (const char c : name) {
    if (is_digit(c) || std::string_view("+-<>=!^*.&\n").find(c) != std::string_view::npos)
      return false;
    letter |= is_letter(c);
  }
  return letter && name.find("\\pm") == name.npos && name.find("\\cup") == name.npos;
}

std::optional<std::string> named_value(std::string_view text) {
  if (const std::size_t in = find_membership(text);
      in != text.npos && is_answer_name(text.substr(0, in)))
    return std::string(trim(text.substr(in + 3)));
  const RelationChain chain = relation_chain(text);
  const bool equations =
      !chain.relations.empty() &&
      std::all_of(chain.relations.begin(), chain.relations.end(),
                  [](Relation relation) { return relation == Relation::kEqual; });
  if (!equations || !is_answer_name(chain.sides.front())) return std::nullopt;
  if (chain.sides.size() > 2 && split_parts(text, ",").size() > 1) return std::nullopt;
  return chain.sides.back();
}

std::optional<std::string> as_interval(const RelationChain& chain) {
  if (chain.sides.size() < 2) return std::nullopt;
  if (std::all_of(chain.relations.begin(), chain.relations.end(), is_above))
    return as_interval(chain.reversed());
  if (!std::all_of(chain.relations.begin(), chain.relations.end(), is_below)) return std::nullopt;
  const auto closed = [&](std::size_t i) { return chain.relations[i] == Relation::kLessEqual; };
  if (chain.sides.size() == 2 && is_answer_name(chain.sides[0]))
    return "(-\\infty," + chain.sides[1] + (closed(0) ? "]" : ")");
  if (chain.sides.size() == 2 && is_answer_name(chain.sides[1]))
    return (closed(0) ? "[" : "(") + chain.sides[0] + ",\\infty)";
  if (chain.sides.size() == 3 && is_answer_name(chain.sides[1]))
    return (closed(0) ? "[" : "(") + chain.sides[0] + "," + chain.sides[2] +
           (closed(1) ? "]" : ")");
  return std::nullopt;
}

}  // namespace rl
