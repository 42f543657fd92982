// Untrusted JSON: parsing with a depth limit, and members that may be missing.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

namespace runtime {

/// nlohmann copies, compares and writes values recursively: a megabyte of brackets would exhaust
/// the stack. Rows of data files have a lower limit, so that a message that contains a row stays
/// within this one.
inline constexpr int kJsonDepthMax = 500;

/// Whether lists and objects are nested deeper than `depth`. For text that is not JSON the result
/// is arbitrary.
inline bool nests_deeper(std::string_view text, int depth = kJsonDepthMax) {
  int open = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++open > depth) return true;
    } else if (c == ']' || c == '}') {
      --open;
    }
  }
  return false;
}

/// Whether a text is nested no deeper than kJsonDepthMax and has no NUL byte, which the parser
/// would take for its end.
inline bool may_parse_json(std::string_view text) {
  return !nests_deeper(text) && text.find('\0') == std::string_view::npos;
}

/// Parses `text`; the result is discarded (`is_discarded()`) if it is malformed or not
/// may_parse_json(). Throws nothing.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text) {
  return may_parse_json(text) ? Json::parse(text, nullptr, /*allow_exceptions=*/false)
                              : Json(nlohmann::json::value_t::discarded);
}

/// The member, or null when it is missing, JSON null, or `object` is no object.
template <class Json>
const Json* json_member(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace runtime
