#include "rl/data/sample_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "rl/data/random.h"

namespace rl {
namespace {

using runtime::invalid_argument;

constexpr std::size_t kPartsMax = 255;

template <class T>
void shuffle_values(std::vector<T>& values, SplitMix random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

// Streams of numbers that differ in one argument are unrelated.
SplitMix stream(std::uint64_t seed, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t state = SplitMix(seed).next();
  for (const std::uint64_t part : {a, b, c}) state = SplitMix(state ^ part).next();
  return SplitMix(state);
}

// `places` shared out by weight.
std::vector<std::int64_t> share_out(std::int64_t places,
                                    const std::vector<SampleLayout::Part>& parts) {
  double sum = 0;
  for (const auto& part : parts) sum += part.weight;
  std::vector<std::int64_t> shares;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::int64_t given = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double share = static_cast<double>(places) * parts[i].weight / sum;
    shares.push_back(static_cast<std::int64_t>(share));
    given += shares.back();
    remainders.emplace_back(std::floor(share) - share,
                            i);  // ascending: largest remainder first, then the first part
  }
  std::sort(remainders.begin(), remainders.end());
  for (std::size_t i = 0; given < places; ++i, ++given)
    ++shares[remainders[i % remainders.size()].second];
  return shares;
}

}  // namespace

std::int64_t SampleLayout::rows() const {
  std::int64_t rows = 0;
  for (const Part& part : parts)
    rows = std::accumulate(part.block_rows.begin(), part.block_rows.end(), rows);
  return rows;
}

std::uint64_t SampleLayout::fingerprint() const {
  if (empty()) return 0;
  std::uint64_t hash = static_cast<std::uint64_t>(window_rows);
  const auto add = [&hash](std::uint64_t value) { hash = SplitMix(hash ^ value).next(); };
  for (const Part& part : parts) {
    add(part.block_rows.size());
    add(std::bit_cast<std::uint64_t>(part.weight));
    for (const std::int64_t rows : part.block_rows) add(static_cast<std::uint64_t>(rows));
  }
  return (hash >> 1) | 1;  // a JSON integer of either sign, never 0
}

runtime::Result<SampleOrder> SampleOrder::create(SampleLayout layout, bool shuffle,
                                                 std::uint64_t seed) {
  if (layout.parts.empty() || layout.parts.size() > kPartsMax)
    return invalid_argument("a data set has 1 to " + std::to_string(kPartsMax) +
                            " files with weights, not " + std::to_string(layout.parts.size()));
  SampleOrder order(std::move(layout), shuffle, seed);
  double weights = 0;
  std::int64_t rows = 0;
  for (const SampleLayout::Part& part : order.layout_.parts) {
    if (!std::isfinite(part.weight) || part.weight < 0)
      return invalid_argument("data.train_weights: a weight must be a number of at least 0, got " +
                              std::to_string(part.weight));
    weights += part.weight;
    PartState& state = order.parts_.emplace_back();
    state.first_row = rows;
    for (const std::int64_t of_block : part.block_rows) {
      state.block_first.push_back(state.rows);
      state.rows += of_block;
    }
    if (state.rows <= 0) return invalid_argument("a data file with a weight has no rows");
    rows += state.rows;
  }
  if (weights <= 0) return invalid_argument("data.train_weights: all weights are 0");
  const std::vector<std::int64_t> shares = share_out(rows, order.layout_.parts);
  for (std::size_t i = 0; i < shares.size(); ++i) order.parts_[i].per_epoch = shares[i];
  return order;
}

std::int64_t SampleOrder::row(std::int64_t epoch, std::int64_t offset) {
  if (parts_.size() == 1) return row_of_part(0, epoch * parts_[0].rows + offset);
  if (epoch != labelled_epoch_) label(epoch);
  if (offset < counted_to_) {
    counted_.assign(parts_.size(), 0);
    counted_to_ = 0;
  }
  for (; counted_to_ < offset; ++counted_to_)
    ++counted_[labels_[static_cast<std::size_t>(counted_to_)]];
  const std::size_t part = labels_[static_cast<std::size_t>(offset)];
  return parts_[part].first_row +
         row_of_part(part, epoch * parts_[part].per_epoch + counted_[part]);
}

void SampleOrder::label(std::int64_t epoch) {
  labels_.clear();
  for (std::size_t part = 0; part < parts_.size(); ++part)
    labels_.insert(labels_.end(), static_cast<std::size_t>(parts_[part].per_epoch),
                   static_cast<std::uint8_t>(part));
  if (shuffle_) shuffle_values(labels_, stream(seed_, 1, static_cast<std::uint64_t>(epoch), 0));
  labelled_epoch_ = epoch;
  counted_.assign(parts_.size(), 0);
  counted_to_ = 0;
}

std::int64_t SampleOrder::row_of_part(std::size_t index, std::int64_t place) {
  PartState& part = parts_[index];
  const std::int64_t cycle = place / part.rows, at = place % part.rows;
  if (!shuffle_) return at;
  if (part.cycle != cycle || at < part.window_begin) begin_cycle(index, cycle);
  while (at >= part.window_end) next_window(index);
  return part.window[static_cast<std::size_t>(at - part.window_begin)];
}

void SampleOrder::begin_cycle(std::size_t index, std::int64_t cycle) {
  PartState& part = parts_[index];
  part.cycle = cycle;
  part.order.resize(part.block_first.size());
  std::iota(part.order.begin(), part.order.end(), std::int64_t{0});
  shuffle_values(part.order, stream(seed_, 2, index, static_cast<std::uint64_t>(cycle)));
  part.window_begin = part.window_end = 0;
  part.next_block = 0;
  part.window.clear();
}

void SampleOrder::next_window(std::size_t index) {
  PartState& part = parts_[index];
  const std::vector<std::int64_t>& block_rows = layout_.parts[index].block_rows;
  part.window_begin = part.window_end;
  part.window.clear();
  while (part.next_block < part.order.size() &&
         (part.window.empty() ||
          static_cast<std::int64_t>(part.window.size()) < layout_.window_rows)) {
    const auto block = static_cast<std::size_t>(part.order[part.next_block++]);
    for (std::int64_t i = 0; i < block_rows[block]; ++i)
      part.window.push_back(part.block_first[block] + i);
  }
  part.window_end = part.window_begin + static_cast<std::int64_t>(part.window.size());
  // Of the cycle and the window: places do not depend on which windows were made before.
  shuffle_values(part.window, stream(seed_, 3 + index, static_cast<std::uint64_t>(part.cycle),
                                     static_cast<std::uint64_t>(part.window_begin)));
}

}  // namespace rl
