#include "rl/mesh/packed_ranges.h"

#include <gtest/gtest.h>

#include <vector>

namespace rl {
namespace {

TEST(PackedRanges, StandOneAfterTheOther) {
  const PackedRanges packed(RangeSet{{10, 20}, {40, 45}, {100, 101}});
  EXPECT_EQ(packed.elements(), 16);
  EXPECT_EQ(packed.packed({10, 20}), (ArenaRange{0, 10}));
  EXPECT_EQ(packed.packed({12, 13}), (ArenaRange{2, 3}));
  EXPECT_EQ(packed.packed({41, 45}), (ArenaRange{11, 15}));
  EXPECT_EQ(packed.packed({100, 101}), (ArenaRange{15, 16}));
  EXPECT_EQ(packed.packed({30, 30}).size(), 0);
}

TEST(PackedRanges, PartsAreWhatIsInTheSet) {
  const PackedRanges packed(RangeSet{{10, 20}, {40, 45}});
  const std::vector<ArenaRange> wanted = {{0, 12}, {18, 41}, {44, 90}};
  const std::vector<ArenaRange> expected = {{0, 2}, {8, 10}, {10, 11}, {14, 15}};
  EXPECT_EQ(packed.packed_parts(wanted), expected);
}

TEST(PackedRanges, MayBeEmpty) {
  const PackedRanges packed;
  EXPECT_EQ(packed.elements(), 0);
  EXPECT_TRUE(packed.packed_parts(std::vector<ArenaRange>{{0, 5}}).empty());
}

}  // namespace
}  // namespace rl
