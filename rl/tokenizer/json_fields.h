// Typed access to the objects of a tokenizer.json. Errors name the field and what it should be;
// nothing throws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "runtime/core/json.h"
#include "runtime/core/result.h"

namespace rl {

/// Sequences may hold sequences; deeper than this is no tokenizer.
inline constexpr int kComponentDepthMax = 8;

using runtime::json_member;

/// A member that must be there. The string_view lives as long as `object`.
runtime::Result<std::string_view> json_string(const nlohmann::json& object, const char* key);
runtime::Result<const nlohmann::json*> json_array(const nlohmann::json& object, const char* key);
runtime::Result<std::int64_t> json_integer(const nlohmann::json& object, const char* key);

/// A member that may be missing or null.
runtime::Result<bool> json_bool_or(const nlohmann::json& object, const char* key, bool otherwise);
runtime::Result<std::string_view> json_string_or(const nlohmann::json& object, const char* key,
                                                 std::string_view otherwise);

/// The "type" of a component, for instance "ByteLevel".
inline runtime::Result<std::string_view> json_type(const nlohmann::json& component) {
  return json_string(component, "type");
}

/// kUnimplemented: "pre_tokenizer UnicodeScripts is not supported".
runtime::Status unsupported_component(std::string_view kind, std::string_view type);

}  // namespace rl
