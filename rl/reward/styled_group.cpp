#include "rl/reward/styled_group.h"

#include "rl/reward/characters.h"
#include "rl/reward/latex_text.h"

namespace rl {

std::optional<StyledGroup> styled_group_at(std::string_view text, std::size_t at) {
  constexpr std::string_view kText = " text mbox textbf textit textrm textsf textnormal hbox ";
  constexpr std::string_view kUpright = " mathrm operatorname ";
  constexpr std::string_view kLetters =
      " mathbf mathbb mathit mathcal mathsf mathfrak bold boldsymbol bm ";
  if (text[at] != '\\') return std::nullopt;
  std::size_t end = at + 1;
  while (end < text.size() && is_letter(text[end])) ++end;
  const std::string name = " " + std::string(text.substr(at + 1, end - at - 1)) + " ";
  StyledGroup group{.is_text = kText.find(name) != kText.npos,
                    .is_upright = kUpright.find(name) != kUpright.npos,
                    .inside = {},
                    .end = 0};
  if (name == "  " || (!group.is_text && !group.is_upright && kLetters.find(name) == kLetters.npos))
    return std::nullopt;
  if (end < text.size() && text[end] == '*') ++end;  // \operatorname*
  while (end < text.size() && text[end] == ' ') ++end;
  if (end >= text.size() || text[end] != '{') return std::nullopt;
  const std::size_t close = closing_brace(text, end);
  if (close == text.npos) return std::nullopt;
  group.inside = std::string(text.substr(end + 1, close - end - 1));
  group.end = close + 1;
  return group;
}

}  // namespace rl
