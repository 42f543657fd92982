// `${...}` references in values, as OmegaConf resolves them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "rl/config/key_table.h"
#include "runtime/core/result.h"

namespace rl {

/// A copy of `tree` with every reference replaced, nested ones too. `${a.b}` is the value itself
/// when it is the whole string, else its text. `${.x}` is relative to the section it stands in.
/// Others are `${oc.select:a.b,default}` and `${oc.env:NAME,default}`. `\${` is a literal.
/// kInvalidArgument: no such key, a cycle, an unknown resolver, or references that multiply beyond
/// 16 MiB; the message names the key.
runtime::Result<nlohmann::ordered_json> resolve_references(const nlohmann::ordered_json& tree,
                                                           const KeyTable& keys = train_keys());

/// The key whose value `value`, which stands at `path`, is: "a.x" for `${.x}` and
/// `${oc.select:.x,1}` at "a.y". Empty for anything but one reference to one key.
std::optional<std::string> referred_key(std::string_view value, const std::string& path);

}  // namespace rl
