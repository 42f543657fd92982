// A program's additions to the keys of `starling train`: further values of a key, and further keys.
// Torch-free. One list a process, since a configuration is read in many places and all must agree
// on what it may say. It is written in main, before the first Config::load() and before other
// threads run, and only read from then on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rl {

/// Adds a value to those that `key` takes. Bugs of the caller are a key that has no list of values,
/// and a value that it takes already. So is a value that is no name (letters, digits, '_' and '-',
/// a letter first).
void add_choice(std::string_view key, std::string_view value);

/// The values that were added for `key`, in the order of their coming.
const std::vector<std::string>& added_choices(std::string_view key);

/// Adds a key without a default; again: changes nothing. A bug of the caller: a key that is known
/// without it, and one whose last part is no name.
void add_key(std::string_view key);
bool is_added_key(std::string_view key);

}  // namespace rl
