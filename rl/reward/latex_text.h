// Places in LaTeX: commands, groups, separators outside brackets. Private to rl/reward.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rl {

void replace_all(std::string& text, std::string_view from, std::string_view to);

/// Replaces a command ("\left"), not the beginning of a longer one ("\leftarrow").
void replace_command(std::string& text, std::string_view from, std::string_view to);

/// Where the brace that opens at `open` closes; npos when it doesn't.
std::size_t closing_brace(std::string_view text, std::size_t open);

/// The parts between separators outside brackets, without blanks around them. A half-open
/// interval's brackets count as a pair.
std::vector<std::string> split_parts(std::string_view text, std::string_view separator);

}  // namespace rl
