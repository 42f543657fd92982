#include "rl/data/row_type.h"

#include <algorithm>

#include "rl/data/json_text.h"

namespace rl {
namespace {

using RowKind = RowType::Kind;
using nlohmann::ordered_json;

RowKind kind_of(const ordered_json& value) {
  switch (value.type()) {
    case ordered_json::value_t::null: return RowKind::kNull;
    case ordered_json::value_t::boolean: return RowKind::kBool;
    case ordered_json::value_t::number_integer: return RowKind::kInt;
    case ordered_json::value_t::number_unsigned:
      return value.get<std::uint64_t>() > INT64_MAX ? RowKind::kUnsigned : RowKind::kInt;
    case ordered_json::value_t::number_float: return RowKind::kFloat;
    case ordered_json::value_t::array: return RowKind::kList;
    case ordered_json::value_t::object: return RowKind::kObject;
    default: return RowKind::kText;
  }
}

const char* kind_name(RowKind kind) {
  switch (kind) {
    case RowKind::kNull: return "null";
    case RowKind::kBool: return "bool";
    case RowKind::kInt: return "int";
    case RowKind::kUnsigned: return "unsigned";
    case RowKind::kFloat: return "float";
    case RowKind::kText: return "text";
    case RowKind::kList: return "list";
    case RowKind::kObject: break;
  }
  return "object";
}

}  // namespace

runtime::Status RowType::add(const ordered_json& value, const std::string& name) {
  const RowKind added = kind_of(value);
  if (added == RowKind::kNull) return {};
  const auto is_whole = [](RowKind of) { return of == RowKind::kInt || of == RowKind::kUnsigned; };
  negative = negative || (added == RowKind::kInt && value.is_number_integer() &&
                          !value.is_number_unsigned() && value.get<std::int64_t>() < 0);
  if (negative && ((kind == RowKind::kUnsigned && is_whole(added)) ||
                   (added == RowKind::kUnsigned && is_whole(kind)))) {
    return runtime::invalid_argument("'" + name + "' has integers below zero and above " +
                                     std::to_string(INT64_MAX) +
                                     ", which no type of 64 bits holds: write them as texts");
  }
  if (kind == RowKind::kNull || (is_whole(kind) && added == RowKind::kFloat) ||
      (kind == RowKind::kInt && added == RowKind::kUnsigned))
    kind = added;
  else if (kind != added && !(kind == RowKind::kFloat && is_whole(added)) &&
           !(kind == RowKind::kUnsigned && added == RowKind::kInt)) {
    return runtime::invalid_argument("'" + name + "' is " + json_type_name(value) + " here, and " +
                                     kind_name(kind) + " in rows before");
  }
  if (kind == RowKind::kList) {
    if (element.empty() && !value.empty()) element.emplace_back();
    for (const ordered_json& child : value) {
      if (runtime::Status status = element[0].add(child, name + "[]"); !status.ok()) return status;
    }
  } else if (kind == RowKind::kObject) {
    for (const auto& [key, child] : value.items()) {
      auto field = std::find_if(fields.begin(), fields.end(),
                                [&key = key](const auto& known) { return known.first == key; });
      if (field == fields.end()) field = fields.insert(fields.end(), {key, RowType()});
      if (runtime::Status status = field->second.add(child, name.empty() ? key : name + "." + key);
          !status.ok())
        return status;
    }
  }
  return {};
}

std::string RowType::to_string() const {
  if (kind == RowKind::kList)
    return "list<" + (element.empty() ? std::string("null") : element[0].to_string()) + ">";
  if (kind != RowKind::kObject) return kind_name(kind);
  std::string text = "object<";
  for (const auto& [name, type] : fields)
    text += (text.back() == '<' ? "" : ", ") + name + ": " + type.to_string();
  return text + ">";
}

}  // namespace rl
