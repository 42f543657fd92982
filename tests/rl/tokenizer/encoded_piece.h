// One piece of text by a model of tokens, in each of the ways in which it can be encoded.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "rl/tokenizer/subword_model.h"

namespace rl::testing {

struct EncodedPiece {
  std::vector<std::int32_t> ids;
  std::vector<Piece> ranges;
};

/// By encode(), again with what the scratch remembers, and by encode_ranges(): the ids are the
/// same, and are appended.
inline EncodedPiece encoded_piece(const TokenModel& model, std::string_view piece) {
  const std::unique_ptr<ModelScratch> scratch = model.make_scratch();
  std::vector<std::int32_t> first = {-7}, again = {-7}, of_ranges = {-7};
  std::vector<Piece> ranges = {{7, 7}};
  model.encode(piece, *scratch, first);
  model.encode(piece, *scratch, again);
  model.encode_ranges(piece, *scratch, of_ranges, ranges);
  EXPECT_EQ(again, first) << piece;
  EXPECT_EQ(of_ranges, first) << piece;
  EXPECT_EQ(ranges.size(), of_ranges.size()) << piece;
  EXPECT_EQ(first.front(), -7) << piece;
  EXPECT_EQ(ranges.front(), (Piece{7, 7})) << piece;
  return {{first.begin() + 1, first.end()}, {ranges.begin() + 1, ranges.end()}};
}

}  // namespace rl::testing
