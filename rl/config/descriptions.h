// One sentence for each key of `starling train` that is used: what it does. For --check, the JSON
// schema and the guide. The data is descriptions.inc.
#pragma once

#include <string_view>

namespace rl {

/// Empty where nothing is written.
std::string_view description_of(std::string_view key);

}  // namespace rl
