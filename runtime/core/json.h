// JSON from outside: parsed within a depth.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

namespace runtime {

/// What nlohmann's values are copied, compared and written by is recursive: a megabyte of brackets
/// would exhaust the stack. Rows of data files, which have a lower limit, fit in with what they are
/// sent in.
inline constexpr int kJsonDepthMax = 500;

/// Whether lists and objects stand in each other deeper than `depth`. Of a text that is no JSON,
/// anything.
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

/// Whether a text is neither nested deeper than kJsonDepthMax nor has a NUL byte, which the parser
/// takes for the end.
inline bool may_parse_json(std::string_view text) {
  return !nests_deeper(text) && text.find('\0') == std::string_view::npos;
}

/// Discarded (`is_discarded()`) where the text is malformed, or may_parse_json() refuses it.
/// Throws nothing.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text) {
  return may_parse_json(text) ? Json::parse(text, nullptr, /*allow_exceptions=*/false)
                              : Json(nlohmann::json::value_t::discarded);
}

}  // namespace runtime
