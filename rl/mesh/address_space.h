// AddressSpace: where every element of a model lies, so that what a rank holds under any mesh is a
// short list of ranges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rl/mesh/arena_range.h"
#include "rl/mesh/range_set.h"

namespace rl {

/// Units, blocks and experts begin on multiples of this many elements: a page of fp32.
inline constexpr std::int64_t kPageElements = 1024;

/// Rows [first_row, first_row + rows) and columns likewise of a parameter, as it is when whole; of
/// a vector, one column.
struct Rectangle {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t first_column = 0;
  std::int64_t columns = 0;

  std::int64_t elements() const { return rows * columns; }
  bool operator==(const Rectangle&) const = default;
};

inline constexpr int kUncut = -1;  // of no block, of no expert

/// A part of a parameter that lies dense in the address space, row by row.
struct Piece {
  std::int64_t parameter = 0;  // its place in ModelPlan::parameters
  Rectangle part;
  int unit = 0;
  int block = kUncut;   // of tensor parallelism
  int expert = kUncut;  // of its unit
  ArenaRange at = {};   // filled in by AddressSpace
  bool operator==(const Piece&) const = default;
};

/// Unit by unit, and within a unit: what is not cut, block 0, block 1, ..., expert 0, expert 1, ...
/// A value that depends on the model alone, never on a mesh.
class AddressSpace {
 public:
  AddressSpace() = default;
  /// Gives the pieces their places, in their order within each group. Every unit, block and expert
  /// begins on a page, every piece on a multiple of kArenaAlignment.
  AddressSpace(std::vector<Piece> pieces, int units, int blocks);

  std::span<const Piece> pieces() const { return pieces_; }
  /// Elements in all, gaps included.
  std::int64_t elements() const { return elements_; }
  int units() const { return static_cast<int>(units_.size()); }
  /// Into how many blocks what tensor parallelism cuts is cut.
  int blocks() const { return blocks_; }
  int experts(int unit) const { return units_[static_cast<std::size_t>(unit)].experts; }

  /// The ranges of a unit; gaps belong to what is before them.
  ArenaRange unit(int unit) const;
  ArenaRange uncut(int unit) const;
  ArenaRange block(int unit, int block) const;
  ArenaRange expert(int unit, int expert) const;

  bool operator==(const AddressSpace&) const = default;

 private:
  struct Unit {
    std::vector<std::int64_t> begins;  // of the uncut part, each block, each expert; and the end
    int experts = 0;
    bool operator==(const Unit&) const = default;
  };

  ArenaRange group(int unit, std::size_t index) const;

  std::vector<Piece> pieces_;  // in the order of their places
  std::vector<Unit> units_;
  int blocks_ = 1;
  std::int64_t elements_ = 0;
};

}  // namespace rl
