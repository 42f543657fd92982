#include "runtime/core/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace runtime {

namespace {

// Longer names are not compared to their end: the work is the product of the lengths.
constexpr std::size_t kComparedMax = 64;

std::size_t common_prefix(std::string_view left, std::string_view right) {
  return static_cast<std::size_t>(
      std::mismatch(left.begin(),
                    left.begin() + static_cast<std::ptrdiff_t>(std::min(left.size(), right.size())),
                    right.begin())
          .first -
      left.begin());
}

}  // namespace

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t changed = diagonal + (left[i - 1] == right[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row.back();
}

std::vector<std::string> nearest(std::string_view wanted,
                                 const std::vector<std::string>& candidates, std::size_t count) {
  wanted = wanted.substr(0, kComparedMax);
  std::vector<std::pair<std::size_t, const std::string*>> near;
  for (const std::string& candidate : candidates) {
    const std::string_view whole = std::string_view(candidate).substr(0, kComparedMax);
    // Of an id people give the first digits.
    const std::size_t distance = std::min(edit_distance(wanted, whole),
                                          edit_distance(wanted, whole.substr(0, wanted.size())));
    const bool is_near = distance <= std::max<std::size_t>(1, wanted.size() / 3) ||
                         common_prefix(wanted, whole) >= 3;
    if (is_near) near.emplace_back(distance, &candidate);
  }
  std::sort(near.begin(), near.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : *a.second < *b.second;
  });
  std::vector<std::string> names;
  for (const auto& [distance, name] : near) {
    if (names.size() < count && std::find(names.begin(), names.end(), *name) == names.end())
      names.push_back(*name);
  }
  return names;
}

std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& candidates) {
  std::string text;
  for (const std::string& name : nearest(wanted, candidates))
    text += (text.empty() ? "; did you mean '" : "', '") + name;
  return text.empty() ? text : text + "'?";
}

std::vector<std::string> closest(std::string_view wanted,
                                 const std::vector<std::string>& candidates, std::size_t count) {
  wanted = wanted.substr(0, kComparedMax);
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& candidate : candidates)
    ranked.emplace_back(edit_distance(wanted, std::string_view(candidate).substr(0, wanted.size())),
                        candidate);
  std::sort(ranked.begin(), ranked.end());
  ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());
  std::vector<std::string> found;
  for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i)
    found.push_back(ranked[i].second);
  return found;
}

std::string offer_closest(std::string_view wanted, const std::vector<std::string>& candidates) {
  std::string text;
  for (const std::string& name : closest(wanted, candidates))
    text += (text.empty() ? "; the nearest: " : ", ") + name;
  return text;
}

}  // namespace runtime
