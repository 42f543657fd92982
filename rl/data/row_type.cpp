#include "rl/data/row_type.h"

#include <algorithm>

#include "rl/data/json_text.h"

namespace rl {
namespace {

using Kind = RowType::Kind;
using nlohmann::ordered_json;

Kind kind_of(const ordered_json& value) {
  switch (value.type()) {
    case ordered_json::value_t::null: return Kind::kNull;
    case ordered_json::value_t::boolean: return Kind::kBool;
    case ordered_json::value_t::number_integer: return Kind::kInt;
    case ordered_json::value_t::number_unsigned: return value.get<std::uint64_t>() > INT64_MAX ? Kind::kUnsigned : Kind::kInt;
    case ordered_json::value_t::number_float: return Kind::kFloat;
    case ordered_json::value_t::array: return Kind::kList;
    case ordered_json::value_t::object: return Kind::kObject;
    default: return Kind::kText;
  }
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kNull: return "null";
    case Kind::kBool: return "bool";
    case Kind::kInt: return "int";
    case Kind::kUnsigned: return "unsigned";
    case Kind::kFloat: return "float";
    case Kind::kText: return "text";
    case Kind::kList: return "list";
    case Kind::kObject: break;
  }
  return "object";
}

}  // namespace

runtime::Status RowType::add(const ordered_json& value, const std::string& name) {
  const Kind added = kind_of(value);
  if (added == Kind::kNull) return {};
  const auto is_whole = [](Kind of) { return of == Kind::kInt || of == Kind::kUnsigned; };
  negative = negative || (added == Kind::kInt && value.is_number_integer() && !value.is_number_unsigned() && value.get<std::int64_t>() < 0);
  if (negative && ((kind == Kind::kUnsigned && is_whole(added)) || (added == Kind::kUnsigned && is_whole(kind)))) {
    return runtime::invalid_argument("'" + name + "' has integers below zero and above " + std::to_string(INT64_MAX) + ", which no type of 64 bits holds: write them as texts");
  }
  if (kind == Kind::kNull || (is_whole(kind) && added == Kind::kFloat) || (kind == Kind::kInt && added == Kind::kUnsigned)) kind = added;
  else if (kind != added && !(kind == Kind::kFloat && is_whole(added)) && !(kind == Kind::kUnsigned && added == Kind::kInt)) {
    return runtime::invalid_argument("'" + name + "' is " + json_type_name(value) + " here, and " + kind_name(kind) + " in rows before");
  }
  if (kind == Kind::kList) {
    if (element.empty() && !value.empty()) element.emplace_back();
    for (const ordered_json& child : value) {
      if (runtime::Status status = element[0].add(child, name + "[]"); !status.ok()) return status;
    }
  } else if (kind == Kind::kObject) {
    for (const auto& [key, child] : value.items()) {
      auto field = std::find_if(fields.begin(), fields.end(), [&key = key](const auto& known) { return known.first == key; });
      if (field == fields.end()) field = fields.insert(fields.end(), {key, RowType()});
      if (runtime::Status status = field->second.add(child, name.empty() ? key : name + "." + key); !status.ok()) return status;
    }
  }
  return {};
}

std::string RowType::to_string() const {
  if (kind == Kind::kList) return "list<" + (element.empty() ? std::string("null") : element[0].to_string()) + ">";
  if (kind != Kind::kObject) return kind_name(kind);
  std::string text = "object<";
  for (const auto& [name, type] : fields) text += (text.back() == '<' ? "" : ", ") + name + ": " + type.to_string();
  return text + ">";
}

}  // namespace rl
