// JSON of data files: parsed within a depth, and described in messages.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace rl {

/// An integer beyond 64 bits is the text of its digits, which a floating-point number would not
/// keep. kInvalidArgument: malformed, nested deeper than 100, or an object that has a key twice;
/// the message starts with `where`.
runtime::Result<nlohmann::ordered_json> parse_json_text(std::string_view text,
                                                        const std::string& where);

/// "a list", "a number", ...
std::string json_type_name(const nlohmann::ordered_json& value);

/// "'question', 'answer'", cut where it gets long; "no keys".
std::string list_json_keys(const nlohmann::ordered_json& object);

/// A text, or another value in its JSON form: a ground truth of 42 is as good as "42". Null is the
/// empty text.
std::string json_as_text(const nlohmann::ordered_json& value);

/// What json_as_text() was made of, where it was no text; otherwise the text.
nlohmann::ordered_json text_as_json(const std::string& text, bool is_json);

/// The first `bytes` of what somebody else wrote, for a message: control characters as JSON escapes
/// them, and bytes that are not UTF-8 replaced.
std::string excerpt(std::string_view text, std::size_t bytes);

/// One line. Bytes that are not UTF-8 are replaced.
std::string json_line(const nlohmann::ordered_json& value);

}  // namespace rl
