#include "rl/config/schema.h"

#include <cmath>
#include <string>
#include <string_view>

#include "rl/config/config.h"
#include "rl/config/keys.h"
#include "rl/config/number_range.h"
#include "rl/config/override.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

// 1e-6 is a text to YAML 1.1, and a number here.
ordered_json number_as_text(bool negative) {
  return {{"type", "string"},
          {"pattern", std::string("^") + (negative ? "[-+]" : "[+]") +
                          "?([0-9]+([.][0-9]*)?|[.][0-9]+)[eE][-+]?[0-9]+$"}};
}

ordered_json type_of(KeyKind kind, bool negative) {
  const ordered_json strings = {{"type", "array"}, {"items", {{"type", "string"}}}};
  switch (kind) {
    case KeyKind::kAny: return ordered_json::object();
    case KeyKind::kInt: return {{"type", "integer"}};
    case KeyKind::kIntOrNull: return {{"type", {"integer", "null"}}};
    case KeyKind::kIntOrAuto:
      return {{"anyOf", ordered_json::array({{{"type", "integer"}}, {{"const", "auto"}}})}};
    case KeyKind::kIntOrFalse:
      return {{"anyOf", ordered_json::array({{{"type", "integer"}}, {{"const", false}}})}};
    case KeyKind::kIntOrEpoch:
      return {{"anyOf", ordered_json::array({{{"type", "integer"}}, {{"const", kEachEpoch}}})}};
    case KeyKind::kFloat:  // null stands next to it anyway
    case KeyKind::kFloatOrNull:
      return {{"anyOf", ordered_json::array({{{"type", "number"}}, number_as_text(negative)})}};
    case KeyKind::kBool: return {{"type", "boolean"}};
    // A number or a word like `true` is a text where one is expected.
    case KeyKind::kString: return {{"type", {"string", "number", "boolean"}}};
    case KeyKind::kStringOrNull: return {{"type", {"string", "number", "boolean", "null"}}};
    case KeyKind::kStrings:
      return {{"anyOf", ordered_json::array({{{"type", {"string", "null"}}}, strings})}};
    case KeyKind::kFloats: return {{"type", "array"}, {"items", {{"type", "number"}}}};
    case KeyKind::kMap: return {{"type", {"object", "null"}}};
  }
  return ordered_json::object();
}

ordered_json choices_of(const KeyInfo& row) {
  ordered_json choices = ordered_json::array();
  std::string_view left = row.allowed;
  while (!left.empty()) {
    const std::size_t bar = left.find('|');
    auto value = parse_override_value(left.substr(0, bar));
    CHECK(value.ok());
    choices.push_back(std::move(value).value());
    left = bar == std::string_view::npos ? std::string_view() : left.substr(bar + 1);
  }
  return choices;
}

// JSON Schema asks them of numbers only: a text or null passes.
ordered_json bounds_of(const NumberRange& range) {
  ordered_json bounds = ordered_json::object();
  if (std::isfinite(range.low)) bounds[range.low_open ? "exclusiveMinimum" : "minimum"] = range.low;
  if (std::isfinite(range.high))
    bounds[range.high_open ? "exclusiveMaximum" : "maximum"] = range.high;
  return bounds;
}

std::string describe(const KeyInfo& row, const KeyTable& keys) {
  if (row.support == KeySupport::kNoEffect) return "No effect here: " + std::string(row.note);
  if (row.support == KeySupport::kRefused)
    return "Refused where it differs from the default" +
           (row.allowed.empty() ? std::string() : " and " + std::string(row.allowed)) + ": " +
           std::string(row.note);
  return std::string(keys.description(row.key));
}

// What a key's value may be. Null, which stands for the default, and references are possible
// everywhere.
ordered_json leaf(const KeyInfo& row, const Config& defaults, const KeyTable& keys) {
  ordered_json schema = ordered_json::object();
  schema["description"] = describe(row, keys);
  const ordered_json* value = row.has_default() ? defaults.find(row.key) : nullptr;
  if (value != nullptr) schema["default"] = *value;
  if (row.support == KeySupport::kNoEffect) schema["deprecated"] = true;
  if (row.support != KeySupport::kSupported || row.kind == KeyKind::kAny) return schema;
  const auto range = NumberRange::parse(row.allowed);
  ordered_json own = type_of(row.kind, !range || range->low < 0);
  if (range) {
    (row.kind == KeyKind::kFloats ? own["items"] : own).update(bounds_of(*range));
    if (range->extra) own = {{"anyOf", ordered_json::array({{{"const", *range->extra}}, own})}};
  } else if (!row.allowed.empty() && row.kind != KeyKind::kStrings) {
    own = {{"enum", choices_of(row)}};
  }
  schema["anyOf"] = ordered_json::array({own, {{"type", "null"}}, {{"$ref", "#/$defs/reference"}}});
  return schema;
}

ordered_json section(bool closed) {
  ordered_json schema = {{"type", "object"}, {"properties", ordered_json::object()}};
  if (closed) schema["additionalProperties"] = false;
  return schema;
}

// Puts a schema at its dotted path, making the sections above it.
void place(ordered_json& root, std::string_view path, ordered_json schema) {
  ordered_json* at = &root;
  for (std::size_t start = 0, dot = 0; dot != std::string_view::npos; start = dot + 1) {
    dot = path.find('.', start);
    if (path.substr(start, dot - start) == "*") {
      ordered_json& others = (*at)["additionalProperties"];
      if (!others.is_object()) others = section(true);
      at = &others;
      continue;
    }
    if (!at->contains("properties"))
      (*at)["properties"] = ordered_json::object();  // of a map that has known keys, too
    ordered_json& members = (*at)["properties"];
    const std::string part(path.substr(start, dot == std::string_view::npos ? dot : dot - start));
    if (dot != std::string_view::npos && !members.contains(part))
      members[part] = section(at->contains("additionalProperties"));  // open below a map
    at = &members[part];
  }
  // What is already there are the known keys of a map: they stay.
  if (!at->is_null() && at->contains("properties")) schema["properties"] = (*at)["properties"];
  *at = std::move(schema);
}

}  // namespace

ordered_json config_schema(const KeyTable& keys) {
  const auto defaults = Config::load({.keys = &keys});
  CHECK(defaults.ok());
  ordered_json schema = section(true);
  for (const KeyInfo& row : keys.rows()) {
    ordered_json one =
        row.kind == KeyKind::kMap
            ? ordered_json({{"type", {"object", "null"}}, {"description", describe(row, keys)}})
            : leaf(row, *defaults, keys);
    place(schema, row.key, std::move(one));
  }
  for (const KeyAlias& alias : keys.aliases()) {
    const bool is_section = alias.old_name.ends_with('.');
    const std::string_view old_name =
        is_section ? alias.old_name.substr(0, alias.old_name.size() - 1) : alias.old_name;
    ordered_json one = {{"description", "An older name of " + std::string(alias.name)},
                        {"deprecated", true}};
    if (is_section) one["type"] = "object";
    place(schema, old_name, std::move(one));
  }
  schema["properties"]["defaults"] = {{"description", "Hydra's; not read"}, {"deprecated", true}};
  schema["properties"]["hydra"] = {{"description", "Hydra's; not read"}, {"deprecated", true}};
  schema["patternProperties"] = {{"\\.", {{"description", "A key as a dotted path"}}}};
  ordered_json whole = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "Configuration of `starling " + std::string(keys.command()) + "`"},
      {"$defs", {{"reference", {{"type", "string"}, {"pattern", "\\$\\{.+\\}"}}}}}};
  whole.update(schema);
  return whole;
}

}  // namespace rl
