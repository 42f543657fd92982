#include "rl/feed/shown_row.h"

#include <cstddef>
#include <sstream>

#include "rl/data/json_text.h"

namespace rl {

namespace {

constexpr std::size_t kLinesShown = 40;
constexpr std::size_t kLineBytesShown = 500;

}  // namespace

std::string shown_lines(std::string_view text, char mark) {
  const std::string begin = std::string("  ") + mark + " ";
  std::string shown;
  std::istringstream lines{std::string(text)};
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    if (count == kLinesShown) return shown + begin + "...\n";
    shown += begin + excerpt(line, kLineBytesShown) + "\n";
  }
  return shown;
}

}  // namespace rl
