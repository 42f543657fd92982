// Characters whose upper or title case is more than one character: ligatures, Greek with iota
// subscript, the German sharp s.
#pragma once

#include <cstdint>
#include <string_view>

namespace rl {

/// Both in UTF-8.
struct CaseExpansion {
  std::uint32_t character;
  std::string_view upper;
  std::string_view title;
};

/// Null when one character stands for each.
const CaseExpansion* find_case_expansion(std::uint32_t character);

}  // namespace rl
