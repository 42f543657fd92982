// The lists of keys in docs/guide/verl.md, made from the table of keys.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/core/status.h"

namespace rl {

/// As Markdown: keys that are used, accepted without effect with the reason, refused with the reason and what passes, and older names.
std::string key_tables();

/// Puts key_tables() between the two marks of a page. kInvalidArgument: the page has no marks.
runtime::Status write_key_tables(const std::filesystem::path& page);

inline constexpr char kTablesBegin[] = "<!-- made by `starling train --write-tables docs/guide/verl.md` -->\n";
inline constexpr char kTablesEnd[] = "<!-- end of what is made -->\n";

}  // namespace rl
