// RowLayout: where the sequences of a packed batch are among its tokens, and among the rows that a
// pass computes for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rl::forward {

/// A sequence of a packed batch: its tokens, and those of them that have their own rows.
struct RowSequence {
  std::int64_t first_token = 0;
  std::int64_t tokens = 0;
  std::int64_t first_row = 0;
  std::int64_t shared = 0;  // leading tokens whose rows are those of the sequence before it

  std::int64_t rows() const { return tokens - shared; }
};

/// Borrows from what holds the rows.
struct RowLayout {
  std::int64_t rows = 0;
  std::span<const RowSequence> sequences = {};  // [B]
  /// Of each token of the batch. Empty: every token is a row, in their order.
  std::span<const std::int32_t> row_of = {};

  bool shared() const { return !row_of.empty(); }
  std::int64_t tokens() const { return shared() ? static_cast<std::int64_t>(row_of.size()) : rows; }
  /// The row of a token of the batch.
  std::int64_t row(std::int64_t token) const {
    return shared() ? row_of[static_cast<std::size_t>(token)] : token;
  }
};

}  // namespace rl::forward
