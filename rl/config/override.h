// Dotted overrides in Hydra's grammar: "a.b=1", "+a.b=x", "++a.b=[1,{c: 2}]", "~a.b".
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace rl {

/// What an override does with its key.
enum class OverrideKind {
  kSet,       // k=v: the key must be known
  kAdd,       // +k=v: the key must not have a value yet, unless both are dictionaries, which merge
  kForceAdd,  // ++k=v: either
  kDelete,    // ~k, ~k=v: the key must have a value (v, when given)
};

struct Override {
  OverrideKind kind = OverrideKind::kSet;
  std::string key;
  nlohmann::ordered_json value;  // null for ~k
  bool has_value = true;         // false for ~k without a value
};

/// kInvalidArgument: not in the grammar; the message shows the text, the place and the cure. Three
/// things are more generous than Hydra. The text steps[3,4] means {steps: [3,4]}. Any character
/// without its own meaning may stand unquoted ("~/data", "#", letters beyond ASCII). Dictionary
/// keys may be quoted. Sweeps ("k=a,b") and functions ("choice(a,b)") are refused by name.
runtime::Result<Override> parse_override(std::string_view text);

/// The value part alone: "[1, {a: b}]" -> a list. An empty text is the empty string. `${...}` stays
/// as text for resolve_references.
runtime::Result<nlohmann::ordered_json> parse_override_value(std::string_view text);

/// A plain word as a value: null, true, 7, 1e-6, or else a string. Hydra's literals: 007 and None
/// are strings, 1_000 is a number.
nlohmann::ordered_json parse_plain_scalar(std::string_view word);

}  // namespace rl
