// JSON of data files: parsing with a depth limit, and descriptions for messages.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace rl {

/// Parses `text`. An integer beyond 64 bits becomes the string of its digits, since a float would
/// lose some. kInvalidArgument: malformed, nested deeper than 100, or a key that an object has
/// twice; the message starts with `where`.
runtime::Result<nlohmann::ordered_json> parse_json_text(std::string_view text,
                                                        const std::string& where);

/// "a list", "a number", ...
std::string json_type_name(const nlohmann::ordered_json& value);

/// "'question', 'answer'", cut where it gets long; "no keys".
std::string list_json_keys(const nlohmann::ordered_json& object);

/// A string itself, or another value as JSON: a ground truth of 42 equals "42". Null is the empty
/// string.
std::string json_as_text(const nlohmann::ordered_json& value);

/// The value that json_as_text() made `text` from; a string unless `is_json`.
nlohmann::ordered_json text_as_json(const std::string& text, bool is_json);

/// The first `bytes` of untrusted text, for a message: control characters as JSON escapes them, and
/// bytes that are not UTF-8 replaced.
std::string excerpt(std::string_view text, std::size_t bytes);

/// The value as one line of JSON. Bytes that are not UTF-8 are replaced.
std::string json_line(const nlohmann::ordered_json& value);

}  // namespace rl
