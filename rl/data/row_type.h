// RowType: the type that all values of a column fit into, found from the values.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/status.h"

namespace rl {

/// A value. Integers fit into floats, but those that no type of 64 bits holds together do not (as
/// hashes, they would be rounded), null into everything. An object's fields are those of all
/// objects seen, in the order of their first appearance.
struct RowType {
  enum class Kind { kNull, kBool, kInt, kUnsigned, kFloat, kText, kList, kObject };

  Kind kind = Kind::kNull;
  bool negative = false;  // kInt: there was one below zero, which kUnsigned (some are above 2^63 -
                          // 1) does not hold
  std::vector<RowType> element;  // of a list: one, or none where all lists were empty
  std::vector<std::pair<std::string, RowType>> fields;  // of an object

  /// Widens this type by one value. kInvalidArgument: no type holds both ("'answer' is a number,
  /// and a string in other rows"); this type is then as it was or wider.
  runtime::Status add(const nlohmann::ordered_json& value, const std::string& name = "");

  /// "text", "list<object<role: text, content: text>>".
  std::string to_string() const;

  bool operator==(const RowType&) const = default;
};

}  // namespace rl
