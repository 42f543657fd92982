// The values of the template language: Python's, as far as templates can make or see them. Strings,
// lists and dictionaries are immutable and shared: the sandbox refuses whatever would change them.
// A namespace is the one thing that can be assigned to.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rl {

class RenderBudget;
class TemplateValue;
struct CallArguments;
using ValueList = std::vector<TemplateValue>;

/// A name or attribute that is not there: prints as nothing, is false and empty, and fails when it
/// is used for more.
struct UndefinedInfo {
  std::string message;                       // "'x' is undefined"
  const char* exception = "UndefinedError";  // or "SecurityError" for what the sandbox hides
};

struct NoneType {
  bool operator==(const NoneType&) const = default;
};

/// start, stop and step, as range() was told.
struct RangeBounds {
  std::int64_t start = 0;
  std::int64_t stop = 0;
  std::int64_t step = 1;
};

struct ListBox {
  ValueList items;
  int depth = 1;
};

struct TupleBox {
  ValueList items;
  std::vector<std::string> names;    // of a named tuple: its items are attributes too
  std::optional<RangeBounds> range;  // of what range() gives, which prints as itself
  int depth = 1;
};

/// An integer beyond 64 bits: kept as it was written, to be printed and compared. Arithmetic on it
/// is refused.
struct BigInteger {
  std::string digits;  // decimal, with "-" in front when negative, without leading zeros
};

/// Insertion-ordered. Keys are any hashable value; strings in practice.
class DictBox {
 public:
  /// Replaces the value of an equal key.
  void set(RenderBudget& budget, TemplateValue key, TemplateValue value);
  void set_text(std::string key, TemplateValue value);
  const TemplateValue* find(std::string_view key) const;
  const TemplateValue* find_value(RenderBudget& budget, const TemplateValue& key) const;
  int depth() const { return depth_; }
  const std::vector<std::pair<TemplateValue, TemplateValue>>& entries() const { return entries_; }

 private:
  // The entry's number; their count when there is none.
  std::size_t position_of(std::string_view key) const;
  std::size_t position_of(RenderBudget& budget, const TemplateValue& key) const;
  void set_at(std::size_t at, TemplateValue key, TemplateValue value);

  std::vector<std::pair<TemplateValue, TemplateValue>> entries_;
  std::vector<std::pair<std::size_t, std::size_t>> index_;  // (hash of a string key, entry), sorted
  int depth_ = 1;
};

struct NamespaceBox {
  std::vector<std::pair<std::string, TemplateValue>> attributes;
};

/// Something to call: a macro, a global function, a method bound to its object.
struct CallableBox {
  std::string type_name;  // as Python says it: "Macro", "function", "method"
  std::string name;
  std::function<TemplateValue(const CallArguments&)> call;  // valid while its rendering runs
  std::vector<std::pair<std::string, TemplateValue>>
      attributes;  // of a macro: name, arguments, ...
  int depth = 0;   // of what a method is bound to, and one
};

struct LoopState;  // `loop`, see scope.h

class TemplateValue {
 public:
  using Text = std::shared_ptr<const std::string>;
  using List = std::shared_ptr<const ListBox>;
  using Tuple = std::shared_ptr<const TupleBox>;
  using Dict = std::shared_ptr<const DictBox>;
  using Namespace = std::shared_ptr<NamespaceBox>;
  using Callable = std::shared_ptr<const CallableBox>;
  using Loop = std::shared_ptr<LoopState>;
  using Undefined = std::shared_ptr<const UndefinedInfo>;
  using Big = std::shared_ptr<const BigInteger>;

  TemplateValue() : data_(NoneType{}) {}
  TemplateValue(bool value)
      : data_(value) {}  // NOLINT(google-explicit-constructor): values mix freely in this language
  TemplateValue(std::int64_t value) : data_(value) {}  // NOLINT(google-explicit-constructor)
  TemplateValue(double value) : data_(value) {}        // NOLINT(google-explicit-constructor)
  TemplateValue(std::string value)
      : data_(std::make_shared<const std::string>(std::move(value))) {
  }  // NOLINT(google-explicit-constructor)
  TemplateValue(Namespace value)
      : data_(std::move(value)) {}                            // NOLINT(google-explicit-constructor)
  TemplateValue(Callable value) : data_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  TemplateValue(Loop value) : data_(std::move(value)) {}      // NOLINT(google-explicit-constructor)

  static TemplateValue text(std::string_view value) { return TemplateValue(std::string(value)); }
  static TemplateValue list(ValueList items);
  static TemplateValue tuple(ValueList items, std::vector<std::string> names = {});
  static TemplateValue range(ValueList items, RangeBounds bounds);
  static TemplateValue dict(DictBox dict);
  /// Of decimal digits, after a "-" perhaps: an integer, whatever its size.
  static TemplateValue integer(std::string_view digits);
  static TemplateValue undefined(std::string message, const char* exception = "UndefinedError");
  /// Throws TemplateFailure when nested deeper than 200. A binary value holds the digits of an
  /// integer that JSON numbers of 64 bits cannot hold; see parse_template_variables.
  static TemplateValue from_json(const nlohmann::ordered_json& json, int depth = 0);

  /// How many values stand in each other: 0 of a number or text, 1 of a list of such. Above 200
  /// making a value fails, so that what is recursive (printing, comparing, freeing) ends.
  /// Namespaces count as 0: they can hold themselves, and are emptied when the rendering ends.
  int depth() const;

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<NoneType>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<std::int64_t>(data_); }
  bool is_big_integer() const {
    return std::holds_alternative<Big>(data_);
  }  // is_number() does not hold for these
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_string() const { return std::holds_alternative<Text>(data_); }
  bool is_list() const { return std::holds_alternative<List>(data_); }
  bool is_tuple() const { return std::holds_alternative<Tuple>(data_); }
  bool is_range() const { return is_tuple() && as_tuple().range.has_value(); }
  bool is_sequence() const { return is_list() || is_tuple(); }
  bool is_dict() const { return std::holds_alternative<Dict>(data_); }
  bool is_namespace() const { return std::holds_alternative<Namespace>(data_); }
  bool is_callable() const { return std::holds_alternative<Callable>(data_); }
  bool is_loop() const { return std::holds_alternative<Loop>(data_); }
  /// Both are of one type; a range is none of the tuples.
  bool is_like(const TemplateValue& other) const {
    return data_.index() == other.data_.index() && is_range() == other.is_range();
  }

  // The matching is_...() must hold.
  bool as_bool() const { return std::get<bool>(data_); }
  std::int64_t as_int() const {
    return is_bool() ? (as_bool() ? 1 : 0) : std::get<std::int64_t>(data_);
  }  // of an int or bool
  double as_double() const {
    return is_float() ? std::get<double>(data_) : static_cast<double>(as_int());
  }  // of any number
  const std::string& as_big_integer() const { return std::get<Big>(data_)->digits; }
  const std::string& as_string() const { return *std::get<Text>(data_); }
  const ValueList& items() const {
    return is_list() ? std::get<List>(data_)->items : std::get<Tuple>(data_)->items;
  }  // of a list or tuple
  const TupleBox& as_tuple() const { return *std::get<Tuple>(data_); }
  const DictBox& as_dict() const { return *std::get<Dict>(data_); }
  NamespaceBox& as_namespace() const { return *std::get<Namespace>(data_); }
  const CallableBox& as_callable() const { return *std::get<Callable>(data_); }
  LoopState& as_loop() const { return *std::get<Loop>(data_); }
  const Loop& loop() const { return std::get<Loop>(data_); }
  const UndefinedInfo& as_undefined() const { return *std::get<Undefined>(data_); }

  /// Python's truth.
  bool truthy() const;
  /// "str", "NoneType", "list", ...
  std::string type_name() const;
  /// str(value), and repr(value) for what is inside containers, charged to the budget by length.
  /// Throws when nested too deeply.
  std::string to_string(RenderBudget& budget) const;
  std::string repr(RenderBudget& budget) const;
  /// Same object, for `is sameas`.
  bool same_as(const TemplateValue& other) const;

 private:
  void append_repr(RenderBudget& budget, std::string& out, int depth) const;
  std::string leaf_repr(RenderBudget& budget) const;

  std::variant<NoneType, bool, std::int64_t, double, Text, List, Tuple, Dict, Namespace, Callable,
               Loop, Undefined, Big>
      data_;
};

/// Throws what using an undefined value throws; does nothing for others.
void require_defined(const TemplateValue& value);

/// Throws the failure of what nests deeper than 200.
void check_value_depth(int depth);

// What follows is charged to the budget by the length of what it looks at.

/// Python's ==: numbers by value, dictionaries without order, a list never equals a tuple.
bool equal_values(RenderBudget& budget, const TemplateValue& a, const TemplateValue& b,
                  int depth = 0);

/// Negative, zero, positive as a < b, a == b, a > b. Throws TypeError in Python's words where the
/// two have no order; `op` is for that message.
int compare_values(RenderBudget& budget, const TemplateValue& a, const TemplateValue& b,
                   const char* op, int depth = 0);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::string indent;  // the text of one level; one line when `multi_line` is false
  bool multi_line = false;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// json.dumps. Throws TypeError for what JSON has no form for.
std::string to_json_text(RenderBudget& budget, const TemplateValue& value, const JsonStyle& style);

}  // namespace rl
