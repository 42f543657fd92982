// Judging one key by itself: is the value of the right type, and what does setting it do here?
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "rl/config/keys.h"
#include "runtime/core/status.h"

namespace rl {

/// What becomes of a key that was set.
struct Judgement {
  enum class Verdict { kUsed, kNoEffect, kRefused, kInvalid };
  Verdict verdict = Verdict::kUsed;
  std::string message;  // for kRefused and kInvalid (wrong type, no such choice, out of range): the
                        // error, without the origin; for kNoEffect: the reason
};

/// `value` is resolved; `default_value` too (null for a key without one). The defaults, null for a
/// key that may be refused, and the allowed values pass.
Judgement judge_key(const KeyInfo& info, std::string_view key, const nlohmann::ordered_json& value,
                    const nlohmann::ordered_json& default_value);

bool is_empty_text(const nlohmann::ordered_json& value);

/// Null, and an empty text, list or dictionary: nothing was said.
bool is_empty_value(const nlohmann::ordered_json& value);

/// As a command line would have it: a text without quotes, all else as JSON.
std::string show_value(const nlohmann::ordered_json& value);

/// "the string 'four'", "the number 3.5", "null", "a list": a value in a message.
std::string describe_value(const nlohmann::ordered_json& value);

/// "an integer", "a list of numbers", ...
std::string_view describe_kind(KeyKind kind);

/// Whether a value can be read as this kind (3.0 is an integer, 3 is a float, a single string is a
/// list of one).
bool matches_kind(const nlohmann::ordered_json& value, KeyKind kind);

}  // namespace rl
