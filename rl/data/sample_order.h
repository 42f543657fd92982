// SampleOrder: the order of rows where it is more than a shuffled list: files with weights, and
// files that are read in blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// How the rows of a data set lie. Parts follow each other; so do the blocks of a part. A value.
struct SampleLayout {
  struct Part {
    std::vector<std::int64_t> block_rows;  // no block is empty
    double weight = 1.0;                   // the part's share in an epoch, over the sum of weights
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts;       // none: all rows are one list
  std::int64_t window_rows = 0;  // blocks in shuffled order are taken together until they have this
                                 // many rows, which are shuffled among each other

  bool empty() const { return parts.empty(); }
  std::int64_t rows() const;
  /// Tells layouts apart, for positions that are resumed. 0 of an empty one.
  std::uint64_t fingerprint() const;
  bool operator==(const SampleLayout&) const = default;
};

/// Which row is at a place of an epoch. An epoch has as many places as there are rows. A part with
/// weight w out of W has w/W of them (whole numbers, largest remainders first). In each part, an
/// epoch goes on where the one before ended. Each row of a part comes once before any comes again.
/// Depends on (layout, shuffle, seed) only; jumping to any place costs one pass over an epoch's
/// labels. Neighbouring places of a part lie in the same few blocks. Memory: 1 byte a row with
/// several parts, 8 bytes a block, 8 bytes a row of a window. Not thread-safe.
class SampleOrder {
 public:
  /// kInvalidArgument: a part without rows, weights that are negative or all 0.
  static runtime::Result<SampleOrder> create(SampleLayout layout, bool shuffle, std::uint64_t seed);

  std::int64_t row(std::int64_t epoch, std::int64_t offset);

 private:
  struct PartState {
    std::int64_t first_row = 0, rows = 0, per_epoch = 0;
    std::vector<std::int64_t> block_first;  // row in the part
    std::int64_t cycle = -1;                // whose blocks are in `order`
    std::vector<std::int64_t> order;
    std::int64_t window_begin = 0, window_end = 0;  // places of the cycle
    std::size_t next_block = 0;                     // in `order`, behind the window
    std::vector<std::int64_t> window;               // rows in the part
  };

  SampleOrder(SampleLayout layout, bool shuffle, std::uint64_t seed)
      : layout_(std::move(layout)), shuffle_(shuffle), seed_(seed) {}
  void label(std::int64_t epoch);
  std::int64_t row_of_part(std::size_t part, std::int64_t place);
  void begin_cycle(std::size_t part, std::int64_t cycle);
  void next_window(std::size_t part);

  SampleLayout layout_;
  bool shuffle_;
  std::uint64_t seed_;
  std::vector<PartState> parts_;
  std::int64_t labelled_epoch_ = -1;
  std::vector<std::uint8_t> labels_;   // [places]: the part
  std::vector<std::int64_t> counted_;  // [parts]: labels before counted_to_
  std::int64_t counted_to_ = 0;
};

}  // namespace rl
