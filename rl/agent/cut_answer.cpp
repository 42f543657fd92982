#include "rl/agent/cut_answer.h"

#include <algorithm>
#include <vector>

namespace rl {

std::string cut_answer(std::string_view text, std::int64_t characters_max, TruncateSide side) {
  if (static_cast<std::int64_t>(text.size()) <= characters_max) return std::string(text);
  std::vector<std::size_t> begins;  // of characters
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) begins.push_back(i);
  }
  const auto count = static_cast<std::int64_t>(begins.size());
  if (count <= characters_max) return std::string(text);
  const auto at = [&](std::int64_t character) {
    return character >= count ? text.size() : begins[static_cast<std::size_t>(character)];
  };
  if (side == TruncateSide::kLeft)
    return "(truncated)..." + std::string(text.substr(at(count - characters_max)));
  if (side == TruncateSide::kRight)
    return std::string(text.substr(0, at(characters_max))) + "...(truncated)";
  const std::int64_t half = characters_max / 2;
  return std::string(text.substr(0, at(half))) + "...(truncated)..." +
         std::string(text.substr(at(count - half)));
}

}  // namespace rl
