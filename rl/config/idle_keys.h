// Keys that have a meaning, but none with the others that are set: what belongs to a part of the
// run that is switched off. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "rl/config/config.h"

namespace rl {

/// Of `set_keys`, which the user set in `config`, a command's of `table`: a line for each reason,
/// "without effect: a.x, a.y (a.enable is not true)".
std::vector<std::string> idle_key_notes(const Config& config, const KeyTable& table,
                                        const std::vector<std::string>& set_keys);

}  // namespace rl
