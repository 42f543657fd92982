// Commands that set their arguments in another style: \text{cm}, \mathrm{e}, \mathbf{v}. Private to
// rl/reward.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rl {

/// A command that sets its argument in another way, with where it ends.
struct StyledGroup {
  bool is_text = false;     // words, not letters of a formula
  bool is_upright = false;  // what units are written in
  std::string inside;
  std::size_t end = 0;
};

/// nullopt: no such command begins at `at`.
std::optional<StyledGroup> styled_group_at(std::string_view text, std::size_t at);

}  // namespace rl
