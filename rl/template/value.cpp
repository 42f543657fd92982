#include "rl/template/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "rl/template/budget.h"
#include "rl/template/failure.h"
#include "rl/template/python_string.h"
#include "rl/template/scope.h"

namespace rl {
namespace {

constexpr int kDepthMax = 200;
constexpr std::size_t kIndexFrom = 16;  // below that, looking at every key is faster

/// The depth of a container of these values.
int depth_around(const ValueList& items) {
  int depth = 0;
  for (const TemplateValue& item : items) depth = std::max(depth, item.depth());
  check_value_depth(depth + 1);
  return depth + 1;
}

}  // namespace

void require_defined(const TemplateValue& value) {
  if (value.is_undefined())
    fail_python(value.as_undefined().exception, value.as_undefined().message);
}

void check_value_depth(int depth) {
  if (depth > kDepthMax)
    fail_python("RecursionError", "a value is nested deeper than " + std::to_string(kDepthMax));
}

void DictBox::set(RenderBudget& budget, TemplateValue key, TemplateValue value) {
  if (key.is_string()) budget.charge_scan(key.as_string().size());
  const std::size_t present =
      key.is_string() ? position_of(std::string_view(key.as_string())) : position_of(budget, key);
  set_at(present, std::move(key), std::move(value));
}

void DictBox::set_text(std::string key, TemplateValue value) {
  const std::size_t present = position_of(std::string_view(key));
  set_at(present, TemplateValue(std::move(key)), std::move(value));
}

void DictBox::set_at(std::size_t at, TemplateValue key, TemplateValue value) {
  depth_ = std::max({depth_, key.depth() + 1, value.depth() + 1});
  if (at < entries_.size()) {
    entries_[at].second = std::move(value);
    return;
  }
  if (key.is_string()) {
    const std::pair<std::size_t, std::size_t> row(std::hash<std::string_view>{}(key.as_string()),
                                                  entries_.size());
    index_.insert(std::lower_bound(index_.begin(), index_.end(), row), row);
  }
  entries_.emplace_back(std::move(key), std::move(value));
}

std::size_t DictBox::position_of(std::string_view key) const {
  if (entries_.size() <= kIndexFrom) {
    const auto found = std::find_if(entries_.begin(), entries_.end(), [key](const auto& entry) {
      return entry.first.is_string() && entry.first.as_string() == key;
    });
    return static_cast<std::size_t>(found - entries_.begin());
  }
  const std::size_t hash = std::hash<std::string_view>{}(key);
  for (auto row = std::lower_bound(index_.begin(), index_.end(),
                                   std::pair<std::size_t, std::size_t>(hash, 0));
       row != index_.end() && row->first == hash; ++row) {
    if (entries_[row->second].first.as_string() == key) return row->second;
  }
  return entries_.size();
}

std::size_t DictBox::position_of(RenderBudget& budget, const TemplateValue& key) const {
  budget.charge_steps(static_cast<std::int64_t>(entries_.size() / 16));
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return equal_values(budget, entry.first, key);
  });
  return static_cast<std::size_t>(found - entries_.begin());
}

const TemplateValue* DictBox::find(std::string_view key) const {
  const std::size_t at = position_of(key);
  return at < entries_.size() ? &entries_[at].second : nullptr;
}

const TemplateValue* DictBox::find_value(RenderBudget& budget, const TemplateValue& key) const {
  if (key.is_string()) {
    budget.charge_scan(key.as_string().size());
    return find(key.as_string());
  }
  const std::size_t at = position_of(budget, key);
  return at < entries_.size() ? &entries_[at].second : nullptr;
}

TemplateValue TemplateValue::list(ValueList items) {
  TemplateValue value;
  const int depth = depth_around(items);
  value.data_ = std::make_shared<const ListBox>(ListBox{std::move(items), depth});
  return value;
}

TemplateValue TemplateValue::tuple(ValueList items, std::vector<std::string> names) {
  TemplateValue value;
  const int depth = depth_around(items);
  value.data_ =
      std::make_shared<const TupleBox>(TupleBox{std::move(items), std::move(names), {}, depth});
  return value;
}

TemplateValue TemplateValue::range(ValueList items, RangeBounds bounds) {
  TemplateValue value;
  value.data_ = std::make_shared<const TupleBox>(TupleBox{std::move(items), {}, bounds, 1});
  return value;
}

TemplateValue TemplateValue::integer(std::string_view digits) {
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  while (digits.size() > 1 && digits.starts_with('0')) digits.remove_prefix(1);
  std::string written = (negative ? "-" : "") + std::string(digits);
  std::int64_t small = 0;
  if (std::from_chars(written.data(), written.data() + written.size(), small).ec == std::errc())
    return small;
  TemplateValue value;
  value.data_ = std::make_shared<const BigInteger>(BigInteger{std::move(written)});
  return value;
}

TemplateValue TemplateValue::dict(DictBox dict) {
  check_value_depth(dict.depth());
  TemplateValue value;
  value.data_ = std::make_shared<const DictBox>(std::move(dict));
  return value;
}

TemplateValue TemplateValue::undefined(std::string message, const char* exception) {
  TemplateValue value;
  value.data_ = std::make_shared<const UndefinedInfo>(UndefinedInfo{std::move(message), exception});
  return value;
}

TemplateValue TemplateValue::from_json(const nlohmann::ordered_json& json, int depth) {
  check_value_depth(depth);
  switch (json.type()) {
    case nlohmann::ordered_json::value_t::boolean: return json.get<bool>();
    case nlohmann::ordered_json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
        return integer(std::to_string(json.get<std::uint64_t>()));
      return json.get<std::int64_t>();
    case nlohmann::ordered_json::value_t::binary:
      return integer(std::string(json.get_binary().begin(), json.get_binary().end()));
    case nlohmann::ordered_json::value_t::number_integer: return json.get<std::int64_t>();
    case nlohmann::ordered_json::value_t::number_float: return json.get<double>();
    case nlohmann::ordered_json::value_t::string: return json.get<std::string>();
    case nlohmann::ordered_json::value_t::array: {
      ValueList items;
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(from_json(item, depth + 1));
      return list(std::move(items));
    }
    case nlohmann::ordered_json::value_t::object: {
      DictBox members;
      for (const auto& [key, item] : json.items())
        members.set_text(key, from_json(item, depth + 1));
      return dict(std::move(members));
    }
    default: return {};
  }
}

int TemplateValue::depth() const {
  if (is_list()) return std::get<List>(data_)->depth;
  if (is_tuple()) return as_tuple().depth;
  if (is_dict()) return as_dict().depth();
  if (is_callable()) return as_callable().depth;
  if (is_loop()) return as_loop().value_depth;
  return 0;
}

bool TemplateValue::truthy() const {
  if (is_bool()) return as_bool();
  if (is_int()) return as_int() != 0;
  if (is_float()) return as_double() != 0;
  if (is_string()) return !as_string().empty();
  if (is_sequence()) return !items().empty();
  if (is_dict()) return !as_dict().entries().empty();
  return !is_none() && !is_undefined();
}

std::string TemplateValue::type_name() const {
  if (is_none()) return "NoneType";
  if (is_bool()) return "bool";
  if (is_int() || is_big_integer()) return "int";
  if (is_float()) return "float";
  if (is_string()) return "str";
  if (is_list()) return "list";
  if (is_tuple()) return is_range() ? "range" : "tuple";
  if (is_dict()) return "dict";
  if (is_namespace()) return "Namespace";
  if (is_loop()) return "LoopContext";
  if (is_callable()) return as_callable().type_name;
  return "Undefined";
}

std::string TemplateValue::to_string(RenderBudget& budget) const {
  if (is_undefined()) return "";
  if (!is_string()) return repr(budget);
  budget.charge_scan(as_string().size());
  return as_string();
}

std::string TemplateValue::repr(RenderBudget& budget) const {
  std::string out;
  append_repr(budget, out, 0);
  return out;
}

// A value may stand in another many times, so that what prints it is charged as it goes.
void TemplateValue::append_repr(RenderBudget& budget, std::string& out, int depth) const {
  check_value_depth(depth);
  budget.charge_steps(1);
  const auto add = [&](std::string_view piece) {
    budget.charge(piece.size());
    out += piece;
  };
  const char* separator = "";
  const auto add_pair = [&](const auto& add_key, const TemplateValue& value) {
    add(separator);
    add_key();
    add(": ");
    value.append_repr(budget, out, depth + 1);
    separator = ", ";
  };
  if (is_dict()) {
    add("{");
    for (const auto& [key, value] : as_dict().entries()) {
      const TemplateValue& name = key;  // clang 14 captures no binding
      add_pair([&] { name.append_repr(budget, out, depth + 1); }, value);
    }
    add("}");
  } else if (is_namespace()) {
    add("<Namespace {");
    for (const auto& [key, value] : as_namespace().attributes) {
      const std::string& name = key;
      add_pair([&] { add(python_string_literal(name)); }, value);
    }
    add("}>");
  } else if (is_sequence() && !is_range()) {
    add(is_list() ? "[" : "(");
    for (const TemplateValue& item : items()) {
      add(separator);
      item.append_repr(budget, out, depth + 1);
      separator = ", ";
    }
    add(is_list() ? "]" : items().size() == 1 ? ",)" : ")");
  } else {
    add(leaf_repr(budget));
  }
}

std::string TemplateValue::leaf_repr(RenderBudget& budget) const {
  if (is_none()) return "None";
  if (is_bool()) return as_bool() ? "True" : "False";
  if (is_int()) return std::to_string(as_int());
  if (is_big_integer()) {
    budget.charge_scan(as_big_integer().size());
    return as_big_integer();
  }
  if (is_float()) return python_float(as_double());
  if (is_range()) {
    const RangeBounds& range = *as_tuple().range;
    return "range(" + std::to_string(range.start) + ", " + std::to_string(range.stop) +
           (range.step == 1 ? "" : ", " + std::to_string(range.step)) + ")";
  }
  if (is_string()) {
    budget.charge_characters(as_string().size());
    return python_string_literal(as_string());
  }
  if (is_loop())
    return "<LoopContext " + std::to_string(as_loop().index + 1) + "/" +
           std::to_string(as_loop().items.size()) + ">";
  if (is_callable() && as_callable().name.empty()) return "<Macro anonymous>";
  if (is_callable()) return "<" + as_callable().type_name + " '" + as_callable().name + "'>";
  return "Undefined";
}

bool TemplateValue::same_as(const TemplateValue& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (is_none()) return true;
  if (is_number()) return as_double() == other.as_double();
  return std::visit(
      [&](const auto& mine) {
        using T = std::decay_t<decltype(mine)>;
        if constexpr (requires { mine.get(); }) {
          return mine.get() == std::get<T>(other.data_).get();
        } else {
          return false;
        }
      },
      data_);
}

namespace {

// What is known of integers beyond 64 bits, and of those within 64 bits with them.
bool integral(const TemplateValue& value) {
  return value.is_big_integer() || value.is_int() || value.is_bool();
}

bool as_numbers(const TemplateValue& a, const TemplateValue& b) {
  return (a.is_number() || a.is_big_integer()) && (b.is_number() || b.is_big_integer());
}

std::string integer_digits(const TemplateValue& value) {
  return value.is_big_integer() ? value.as_big_integer() : std::to_string(value.as_int());
}

double number_of(const TemplateValue& value) {
  return value.is_big_integer() ? std::strtod(value.as_big_integer().c_str(), nullptr)
                                : value.as_double();
}

// Those of integers beyond 64 bits, which are as long as a template likes.
void charge_digits(RenderBudget& budget, const TemplateValue& a, const TemplateValue& b) {
  for (const TemplateValue* value : {&a, &b}) {
    if (value->is_big_integer()) budget.charge_scan(value->as_big_integer().size());
  }
}

int compare_digits(const std::string& a, const std::string& b) {
  const bool negative = a.starts_with('-');
  if (negative != b.starts_with('-')) return negative ? -1 : 1;
  const int order = a.size() != b.size() ? (a.size() < b.size() ? -1 : 1) : a.compare(b);
  return negative ? -order : order;
}

}  // namespace

bool equal_values(RenderBudget& budget, const TemplateValue& a, const TemplateValue& b, int depth) {
  check_value_depth(depth);
  if (a.is_number() && b.is_number()) {
    if (!a.is_float() && !b.is_float()) return a.as_int() == b.as_int();
    return a.as_double() == b.as_double();
  }
  if (a.is_big_integer() || b.is_big_integer()) {
    charge_digits(budget, a, b);
    return integral(a) && integral(b) ? integer_digits(a) == integer_digits(b)
                                      : as_numbers(a, b) && number_of(a) == number_of(b);
  }
  if (!a.is_like(b)) return false;
  if (a.is_none() || a.is_undefined()) return true;
  if (a.is_string()) {
    if (a.as_string().size() != b.as_string().size()) return false;
    budget.charge_scan(a.as_string().size());
    return a.as_string() == b.as_string();
  }
  if (a.is_sequence()) {
    if (a.items().size() != b.items().size()) return false;
    return std::equal(a.items().begin(), a.items().end(), b.items().begin(),
                      [&budget, depth](const TemplateValue& x, const TemplateValue& y) {
                        budget.charge_steps(1);
                        return equal_values(budget, x, y, depth + 1);
                      });
  }
  if (a.is_dict()) {
    if (a.as_dict().entries().size() != b.as_dict().entries().size()) return false;
    for (const auto& [key, value] : a.as_dict().entries()) {
      budget.charge_steps(1);
      const TemplateValue* other = b.as_dict().find_value(budget, key);
      if (other == nullptr || !equal_values(budget, value, *other, depth + 1)) return false;
    }
    return true;
  }
  return a.same_as(b);
}

int compare_values(RenderBudget& budget, const TemplateValue& a, const TemplateValue& b,
                   const char* op, int depth) {
  check_value_depth(depth);
  for (const TemplateValue* value : {&a, &b}) require_defined(*value);
  const auto order = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.is_number() && b.is_number()) {
    return a.is_float() || b.is_float() ? order(a.as_double(), b.as_double())
                                        : order(a.as_int(), b.as_int());
  }
  if (as_numbers(a, b)) {
    charge_digits(budget, a, b);
    return integral(a) && integral(b) ? compare_digits(integer_digits(a), integer_digits(b))
                                      : order(number_of(a), number_of(b));
  }
  if (a.is_string() && b.is_string()) {
    budget.charge_scan(std::min(a.as_string().size(), b.as_string().size()));
    return order(a.as_string(), b.as_string());  // UTF-8 sorts as its code points do
  }
  if ((a.is_list() && b.is_list()) || (a.is_tuple() && b.is_tuple())) {
    for (std::size_t i = 0; i < std::min(a.items().size(), b.items().size()); ++i) {
      budget.charge_steps(1);
      if (equal_values(budget, a.items()[i], b.items()[i], depth + 1)) continue;
      return compare_values(budget, a.items()[i], b.items()[i], op, depth + 1);
    }
    return order(a.items().size(), b.items().size());
  }
  fail_type("'" + std::string(op) + "' not supported between instances of '" + a.type_name() +
            "' and '" + b.type_name() + "'");
}

namespace {

// One JSON text as it is written.
class JsonWriter {
 public:
  JsonWriter(RenderBudget& budget, const JsonStyle& style)
      : budget_(budget),
        style_(style),
        // As json.dumps does when it breaks lines.
        separator_(style.multi_line && style.item_separator == ", " ? "," : style.item_separator) {}

  void write(const TemplateValue& value, int depth) {
    check_value_depth(depth);
    budget_.charge_steps(1);
    if (value.is_dict()) {
      write_dict(value.as_dict(), depth);
    } else if (value.is_sequence() && !value.is_range()) {
      write_list(value.items(), depth);
    } else {
      add(leaf(value));
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void add(std::string_view piece) {
    budget_.charge(piece.size());
    out_ += piece;
  }

  void break_line(int levels) {
    if (!style_.multi_line) return;
    add("\n");
    for (int i = 0; i < levels; ++i) add(style_.indent);
  }

  void write_list(const ValueList& items, int depth) {
    if (items.empty()) return add("[]");
    add("[");
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) add(separator_);
      break_line(depth + 1);
      write(items[i], depth + 1);
    }
    break_line(depth);
    add("]");
  }

  void write_dict(const DictBox& dict, int depth) {
    if (dict.entries().empty()) return add("{}");
    std::vector<const std::pair<TemplateValue, TemplateValue>*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [this](const auto* a, const auto* b) {
        return compare_values(budget_, a->first, b->first, "<") < 0;
      });
    }
    add("{");
    for (const auto* entry : entries) {
      if (entry != entries.front()) add(separator_);
      break_line(depth + 1);
      const TemplateValue& key = entry->first;
      if (key.is_sequence() || key.is_dict())
        fail_type("keys must be str, int, float, bool or None, not " + key.type_name());
      add(key.is_string() ? leaf(key) : json_string(leaf(key), style_.ensure_ascii));
      add(style_.key_separator);
      write(entry->second, depth + 1);
    }
    break_line(depth);
    add("}");
  }

  std::string leaf(const TemplateValue& value) {
    if (value.is_none()) return "null";
    if (value.is_bool()) return value.as_bool() ? "true" : "false";
    if (value.is_int()) return std::to_string(value.as_int());
    if (value.is_big_integer()) return value.repr(budget_);
    if (value.is_float()) {
      const double number = value.as_double();
      if (std::isnan(number)) return "NaN";
      if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
      return python_float(number);
    }
    if (!value.is_string())
      fail_type("Object of type " + value.type_name() + " is not JSON serializable");
    budget_.charge_characters(value.as_string().size());
    return json_string(value.as_string(), style_.ensure_ascii);
  }

  RenderBudget& budget_;
  const JsonStyle& style_;
  const std::string separator_;
  std::string out_;
};

}  // namespace

std::string to_json_text(RenderBudget& budget, const TemplateValue& value, const JsonStyle& style) {
  JsonWriter writer(budget, style);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace rl
