#include "rl/data/json_text.h"

#include "runtime/core/json.h"

namespace rl {

using nlohmann::ordered_json;
using runtime::invalid_argument;

namespace {

constexpr int kDepthMax = 100;  // nested JSON

}  // namespace

runtime::Result<ordered_json> parse_json_text(std::string_view text, const std::string& where) {
  if (runtime::nests_deeper(text, kDepthMax))
    return invalid_argument(where + ": nested deeper than " + std::to_string(kDepthMax));
  if (text.find('\0') != std::string_view::npos)
    return invalid_argument(where + ": not JSON: it has a NUL byte");
  try {
    return ordered_json::parse(text);
  } catch (const ordered_json::exception& exception) {
    const std::string what = exception.what();
    const std::size_t at = what.find("] ");
    return invalid_argument(
        where + ": not JSON: " + (at == std::string::npos ? what : what.substr(at + 2)));
  }
}

std::string json_type_name(const ordered_json& value) {
  switch (value.type()) {
    case ordered_json::value_t::object: return "an object";
    case ordered_json::value_t::array: return "a list";
    case ordered_json::value_t::string: return "a string";
    case ordered_json::value_t::null: return "null";
    case ordered_json::value_t::boolean: return "true or false";
    default: return "a number";
  }
}

std::string list_json_keys(const ordered_json& object) {
  std::string names;
  for (const auto& [key, value] : object.items()) {
    if (names.size() > 200) return names + ", ...";
    names += (names.empty() ? "'" : ", '") + key + "'";
  }
  return names.empty() ? "no keys" : names;
}

std::string json_line(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string excerpt(std::string_view text, std::size_t bytes) {
  const std::string quoted = json_line(ordered_json(std::string(text.substr(0, bytes))));
  std::string out;
  for (std::size_t i = 1; i + 1 < quoted.size(); ++i) {
    const bool of_quote =
        quoted[i] == '\\' &&
        (quoted[i + 1] == '"' || quoted[i + 1] == '\\');  // which stand for themselves here
    out += quoted[i += of_quote ? 1 : 0];
  }
  return out;
}

std::string json_as_text(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : json_line(value);
}

}  // namespace rl
