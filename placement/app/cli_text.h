// Text output of the commands: names and reasons come from other people's programs, and a terminal
// must not obey them.
#pragma once

namespace placement {

/// printf to stdout, of printable_text().
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

}  // namespace placement
