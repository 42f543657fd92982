// The JSON schema of a configuration file, for editors.
#pragma once

#include <nlohmann/json.hpp>

#include "rl/config/key_table.h"

namespace rl {

/// JSON Schema, draft 2020-12, of the YAML that --config reads: each known key with type, default,
/// choices and what it does here. What is accepted without effect, and older names, are marked as
/// deprecated. Every value may be a `${...}` reference instead.
nlohmann::ordered_json config_schema(const KeyTable& keys = train_keys());

}  // namespace rl
