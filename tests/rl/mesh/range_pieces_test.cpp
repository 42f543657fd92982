#include "rl/mesh/range_pieces.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

TEST(InPieces, AreNoLongerThanAsked) {
  const std::vector<ArenaRange> expected = {{0, 4}, {4, 8}, {8, 10}, {20, 24}, {24, 25}};
  EXPECT_EQ(in_pieces(RangeSet{{0, 10}, {20, 25}}, 4), expected);
  EXPECT_TRUE(in_pieces(RangeSet(), 4).empty());
}

}  // namespace
}  // namespace rl
