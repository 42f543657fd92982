#include "rl/app/sample_table.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "rl/template/python_string.h"
#include "runtime/core/printable_text.h"

namespace rl {
namespace {

constexpr std::size_t kColumns = 4;

std::string printable(const std::string& text) {
  return runtime::printable_text(text, /*one_line=*/true);
}

// A character is taken to be a column wide, which wide scripts are not. Keeps the end of a prompt
// (where the question is) or the beginning of anything else.
std::string fit(const std::string& text, std::int64_t width, bool keep_end) {
  const std::int64_t columns = count_characters(text);
  if (columns <= width) return text + std::string(static_cast<std::size_t>(width - columns), ' ');
  const std::vector<std::string_view> characters = split_characters(text);
  const auto kept = static_cast<std::ptrdiff_t>(width - 2);
  std::string out;
  if (keep_end) {
    for (auto it = characters.end() - kept; it != characters.end(); ++it) out += *it;
    return ".." + out;
  }
  for (auto it = characters.begin(); it != characters.begin() + kept; ++it) out += *it;
  return out + "..";
}

// Columns that need less than an even share leave the rest to the others.
void share_width(std::array<std::int64_t, kColumns>& widths, std::int64_t total) {
  std::array<std::int64_t*, kColumns> by_width{};
  std::transform(widths.begin(), widths.end(), by_width.begin(),
                 [](std::int64_t& width) { return &width; });
  std::sort(by_width.begin(), by_width.end(), [](const auto* a, const auto* b) { return *a < *b; });
  for (std::size_t i = 0; i < kColumns; ++i) {
    const std::int64_t share =
        std::max<std::int64_t>(8, total / static_cast<std::int64_t>(kColumns - i));
    *by_width[i] = std::min(*by_width[i], share);
    total -= *by_width[i];
  }
}

std::string scored(const SampleText& sample) {
  char score[32];
  std::snprintf(score, sizeof score, "%.2f  ", sample.score);
  return score + printable(sample.response);
}

}  // namespace

std::string sample_table(const std::vector<SampleText>& before,
                         const std::vector<SampleText>& after, std::int64_t width) {
  std::vector<std::array<std::string, kColumns>> rows{{"prompt", "expected", "before", "after"}};
  for (std::size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
    const SampleText& sample = i < after.size() ? after[i] : before[i];
    rows.push_back({printable(sample.prompt), printable(sample.ground_truth),
                    i < before.size() ? scored(before[i]) : "-",
                    i < after.size() ? scored(after[i]) : "-"});
  }
  std::array<std::int64_t, kColumns> widths{};
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < kColumns; ++c)
      widths[c] = std::max(widths[c], count_characters(row[c]));
  }
  share_width(widths, width - 3 * 3);
  std::string table;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < kColumns; ++c)
      table += (c > 0 ? " | " : "") + fit(rows[r][c], widths[c], /*keep_end=*/c == 0);
    table += "\n";
    if (r > 0) continue;
    for (std::size_t c = 0; c < kColumns; ++c)
      table += (c > 0 ? "-+-" : "") + std::string(static_cast<std::size_t>(widths[c]), '-');
    table += "\n";
  }
  return table;
}

}  // namespace rl
