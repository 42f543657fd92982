// Removal of LaTeX that only changes the looks of a formula. Pure functions.
#pragma once

#include <string>

namespace rl {

/// Without sizes, colours, underlines, spaces, \left and \displaystyle; \dfrac, \lbrace, \choose
/// and the like as \frac, \{, \binom. A line end stands for the end of a matrix's row.
void drop_looks(std::string& text);

}  // namespace rl
