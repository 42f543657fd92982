// Nearest names, for messages about a misspelt key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rl/config/key_table.h"

namespace rl {

/// Up to `count` known keys close to `key`, nearest first: by the whole path, or by its last part
/// ("trainer.train_batch_size" finds "data.train_batch_size"). Empty when nothing is close.
std::vector<std::string> nearest_keys(std::string_view key, std::size_t count = 3,
                                      const KeyTable& keys = train_keys());

/// "unknown key 'x': did you mean 'a' or 'b'?", or how to add it on purpose.
std::string unknown_key_message(std::string_view key, const KeyTable& keys = train_keys());

}  // namespace rl
