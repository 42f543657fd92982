// The lists of keys in the guide, made from the table of keys.
#pragma once

#include <filesystem>
#include <string>

#include "rl/config/key_table.h"
#include "runtime/core/status.h"

namespace rl {

/// As Markdown: keys that are used, accepted without effect with the reason, refused with the
/// reason and what passes, and older names.
std::string key_tables(const KeyTable& keys = train_keys());

/// Puts key_tables() between the two marks of a page. kInvalidArgument: the page has no marks.
runtime::Status write_key_tables(const std::filesystem::path& page,
                                 const KeyTable& keys = train_keys());

/// The mark before the lists of a command, which says how they are made.
std::string tables_begin(const KeyTable& keys = train_keys());
inline constexpr char kTablesEnd[] = "<!-- end of what is made -->\n";

}  // namespace rl
