#include "rl/reward/interval_union.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "rl/reward/latex_text.h"
#include "rl/reward/number_text.h"
#include "rl/reward/numeric_value.h"

namespace rl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Bound {
  double at = 0;
  bool is_closed = false;
};

struct Interval {
  Bound low, high;
};

bool same_place(double a, double b) {
  constexpr double kSlack = 1e-12;  // of values that are computed in binary
  return a == b || std::abs(a - b) <= kSlack * std::max({1.0, std::abs(a), std::abs(b)});
}

std::optional<double> bound_of(const std::string& text) {
  if (text == "-\\infty" || text == "- \\infty") return -kInfinity;
  if (text == "\\infty" || text == "+\\infty") return kInfinity;
  return real_value(text);
}

/// "(0,1]" as one interval, "\{1,2\}" as two that have one number each.
std::optional<std::vector<Interval>> intervals_of(std::string_view text) {
  text = trim(text);
  std::vector<Interval> all;
  const std::size_t brace = text.starts_with("\\{") && text.ends_with("\\}") ? 2 : 1;
  const bool is_set = brace == 2 || (text.starts_with('{') && text.ends_with('}'));
  if (is_set && text.size() > 2 * brace) {
    for (const std::string& member :
         split_parts(text.substr(brace, text.size() - 2 * brace), ",")) {
      const auto value = real_value(member);
      if (!value) return std::nullopt;
      all.push_back({{*value, true}, {*value, true}});
    }
    return all;
  }
  const bool is_interval = text.size() > 2 && (text.front() == '(' || text.front() == '[') &&
                           (text.back() == ')' || text.back() == ']');
  if (!is_interval) return std::nullopt;
  const auto bounds = split_parts(text.substr(1, text.size() - 2), ",");
  if (bounds.size() != 2) return std::nullopt;
  const auto low = bound_of(bounds[0]), high = bound_of(bounds[1]);
  if (!low || !high || *low >= *high) return std::nullopt;
  all.push_back({{*low, text.front() == '['}, {*high, text.back() == ']'}});
  return all;
}

/// In order, and none touches the next.
std::optional<std::vector<Interval>> merged(const std::vector<std::string>& parts) {
  std::vector<Interval> all;
  for (const std::string& part : parts) {
    const auto intervals = intervals_of(part);
    if (!intervals) return std::nullopt;
    all.insert(all.end(), intervals->begin(), intervals->end());
  }
  std::sort(all.begin(), all.end(), [](const Interval& a, const Interval& b) {
    return a.low.at != b.low.at ? a.low.at < b.low.at : a.low.is_closed > b.low.is_closed;
  });
  std::vector<Interval> out;
  for (const Interval& next : all) {
    const bool meets = !out.empty() && same_place(next.low.at, out.back().high.at) &&
                       (next.low.is_closed || out.back().high.is_closed);
    const bool overlaps = !out.empty() && !same_place(next.low.at, out.back().high.at) &&
                          next.low.at < out.back().high.at;
    if (!meets && !overlaps) {
      out.push_back(next);
      continue;
    }
    Bound& high = out.back().high;
    if (same_place(next.high.at, high.at))
      high.is_closed |= next.high.is_closed;
    else if (next.high.at > high.at)
      high = next.high;
  }
  return out;
}

bool same_bound(const Bound& a, const Bound& b) {
  return a.is_closed == b.is_closed && same_place(a.at, b.at);
}

}  // namespace

bool same_union_of_intervals(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto left = merged(a), right = merged(b);
  return left && right &&
         std::equal(left->begin(), left->end(), right->begin(), right->end(),
                    [](const Interval& x, const Interval& y) {
                      return same_bound(x.low, y.low) && same_bound(x.high, y.high);
                    });
}

}  // namespace rl
