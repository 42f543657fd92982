// What the commands print: names and reasons come from other people's programs, and a terminal must
// not obey them.
#pragma once

#include <string>

namespace runtime {

/// `text` with '?' for each control character but newlines and tabs; with `one_line` for those too.
std::string shown(const std::string& text, bool one_line = false);

/// printf to stdout, of shown() text.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

}  // namespace runtime
