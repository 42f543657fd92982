// Chains of relations in an answer: "x = 5", "2 < x \le 7". Pure functions of plain_math()'s form.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rl {

enum class Relation { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

/// Sides with relations between them, one less. A value.
struct RelationChain {
  std::vector<std::string> sides;
  std::vector<Relation> relations;

  /// The same from right to left: "5 > x" for "x < 5".
  RelationChain reversed() const;
};

/// Each from right to left.
std::vector<Relation> flipped(std::vector<Relation> relations);

/// The relations outside brackets; one side when there are none.
RelationChain relation_chain(std::string_view text);

/// Whether this names what is asked for and says nothing of its value: "x", "\theta", "f(x)",
/// "(x, y)", "\angle ABC", "x_1".
bool is_answer_name(std::string_view text);

/// "x" of x_1 and x_{12}.
std::string without_index(std::string_view name);

/// What stands behind "x =" or "x \in": nullopt when no name is before it, or when it is a list of
/// several equations.
std::optional<std::string> named_value(std::string_view text);

/// "2 < x \le 7" as "(2,7]", "x > 3" as "(3,\infty)". nullopt: it bounds no single name.
std::optional<std::string> as_interval(const RelationChain& chain);

}  // namespace rl
