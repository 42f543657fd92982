#include "rl/batch/supervised_batch.h"

#include <algorithm>

namespace rl {

void SupervisedBatch::append(const LearnedTokens& row) {
  ids.append(row.ids);
  learned.append(row.learned);
}

std::int64_t SupervisedBatch::learned_tokens() const {
  return std::count(learned.values.begin(), learned.values.end(), 1);
}

runtime::Status SupervisedBatch::validate() const {
  if (!ids.consistent() || !learned.consistent() || ids.offsets != learned.offsets)
    return runtime::invalid_argument("a supervised batch whose sizes do not fit together");
  for (std::int64_t row = 0; row < rows(); ++row) {
    if (ids.row_size(row) == 0)
      return runtime::invalid_argument("a supervised batch with an empty sequence");
    if (learned.row(row).front() != 0)
      return runtime::invalid_argument(
          "a supervised batch that learns the first token of a sequence, before which there is "
          "nothing");
  }
  return {};
}

PackedBatch pack_supervised(const SupervisedBatch& batch, const MicroBatch& rows) {
  PackedBatch packed;
  for (std::int64_t row = rows.first; row < rows.last; ++row) {
    const std::int64_t begin = packed.tokens();
    const auto ids = batch.ids.row(row);
    packed.append(ids, static_cast<std::int64_t>(ids.size()));  // no target yet
    const auto learned = batch.learned.row(row);
    for (std::size_t i = 1; i < learned.size(); ++i) {
      if (learned[i] != 0) packed.targets.push_back(begin + static_cast<std::int64_t>(i));
    }
  }
  return packed;
}

std::vector<std::int64_t> sequence_lengths(const SupervisedBatch& batch) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t row = 0; row < batch.rows(); ++row) lengths.push_back(batch.ids.row_size(row));
  return lengths;
}

}  // namespace rl
