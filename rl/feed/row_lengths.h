// RowLengths: the numbers of tokens of a data set's rows, from which follows what a pass over some
// of them takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "rl/batch/batch_plan.h"

namespace rl {

/// A value. An item is what goes into a pass whole: a row, a pair, or a single response.
struct RowLengths {
  std::int64_t longest = 0;              // tokens of the longest sequence
  std::vector<std::int64_t> items = {};  // tokens that a pass computes for each, largest first;
                                         // none: all are as long as may be
  std::int64_t items_per_row = 1;        // at most
  std::int64_t sequences_per_item = 1;   // 2: a pair
  std::int64_t rows = 0;                 // of the data set
  std::int64_t rows_seen = 0;            // of these, the first ones, whose lengths are known
  bool scores_other_responses = false;   // a prompt is also scored with another row's response

  bool all_seen() const { return rows_seen >= rows; }

  /// The same of rows that are all as long as may be.
  RowLengths of_length(std::int64_t tokens) const {
    RowLengths same = *this;
    same.longest = tokens;
    same.items.clear();
    return same;
  }

  void add(std::int64_t item) { items.push_back(item); }
  void sort() { std::sort(items.begin(), items.end(), std::greater<>()); }

  /// Tokens of the `count` longest items together. Rows that were not seen count as those that
  /// were.
  std::int64_t of_longest(std::int64_t count) const {
    if (items.empty()) return count * sequences_per_item * longest;
    const std::int64_t known = std::min(count, static_cast<std::int64_t>(items.size()));
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < known; ++i) sum += items[static_cast<std::size_t>(i)];
    return all_seen() ? sum : sum + (count - known) * items.front();
  }

  /// Tokens of one pass over at most `count` items.
  std::int64_t of_pass(std::int64_t count, const MicroBatchLimits& limits) const {
    std::int64_t tokens =
        of_longest(limits.samples_max > 0 ? std::min(count, limits.samples_max) : count);
    if (limits.tokens_max > 0)
      tokens = std::min(tokens, std::max(limits.tokens_max, of_longest(1)));
    return tokens;
  }

  /// Whether `count` items are always one pass.
  bool is_one_pass(std::int64_t count, const MicroBatchLimits& limits) const {
    // Of a pair the limit counts the prompt twice, whether or not a pass computes it twice.
    const RowLengths& counted = sequences_per_item > 1 ? of_length(longest) : *this;
    return (limits.samples_max == 0 || count <= limits.samples_max) &&
           (limits.tokens_max == 0 ||
            counted.of_longest(count) <= std::max(limits.tokens_max, counted.of_longest(1)));
  }
};

}  // namespace rl
