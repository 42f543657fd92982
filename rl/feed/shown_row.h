// A row of the training data for people, as --dry-run shows it.
#pragma once

#include <string>
#include <string_view>

namespace rl {

/// Each line of `text` behind two spaces, `mark` and a space; long lines and long texts are cut.
/// Ends with a line break where there is any text.
std::string shown_lines(std::string_view text, char mark);

}  // namespace rl
