#include "runtime/node/nearest.h"

#include <algorithm>
#include <numeric>

namespace runtime {

namespace {

std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> nearest(const std::string& wanted, const std::vector<std::string>& candidates, std::size_t count) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& candidate : candidates) {
    ranked.emplace_back(distance(wanted.substr(0, 64), candidate.substr(0, std::min<std::size_t>(wanted.size(), 64))), candidate);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> found;
  for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i) found.push_back(ranked[i].second);
  return found;
}

}  // namespace runtime
