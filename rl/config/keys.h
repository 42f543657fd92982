// Known keys: what each means here. Those of `starling train` are keys.inc.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace rl {

/// The type a value must have. kAny for keys whose value is not read.
enum class KeyKind {
  kAny,
  kInt,
  kIntOrNull,
  kIntOrAuto,
  kIntOrEpoch,
  kIntOrFalse,
  kFloat,
  kFloatOrNull,
  kBool,
  kString,
  kStringOrNull,
  kStrings,
  kFloats,
  kMap
};

/// What kIntOrEpoch is besides a number of steps.
inline constexpr const char* kEachEpoch = "after_each_epoch";

/// What setting a key does.
enum class KeySupport {
  kSupported,  // it is used
  kNoEffect,   // it is accepted and changes nothing here
  kRefused,  // it would change the result and is not built: only the default and the allowed values
             // pass
};

struct KeyInfo {
  std::string_view key;           // a part of it that is `*` stands for any one name
  std::string_view default_text;  // Hydra's value grammar; "-" when the default configuration does
                                  // not have the key
  KeyKind kind;
  KeySupport support;
  std::string_view allowed;  // '|' between values, or an interval of numbers: NumberRange
  std::string_view note;

  bool has_default() const { return default_text != "-"; }

  /// Of a key that the row was found by: it is inside of the dictionary that the row is about.
  bool is_above(std::string_view found) const {
    return std::count(found.begin(), found.end(), '.') > std::count(key.begin(), key.end(), '.');
  }
};

/// An older or colloquial name: a key, or a section when it ends in '.'.
struct KeyAlias {
  std::string_view old_name;
  std::string_view name;
};

/// Those of `starling train`; KeyTable has those of each command.
std::span<const KeyInfo> known_keys();
std::span<const KeyAlias> key_aliases();
const KeyInfo* find_key(std::string_view key);
std::string canonical_key(std::string_view key);

}  // namespace rl
