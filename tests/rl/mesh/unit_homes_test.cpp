#include "rl/mesh/unit_homes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace rl {
namespace {

constexpr std::int64_t kChunk = 8;

// An arena in units, of which some have two ranges.
std::vector<RangeSet> drawn_units(std::mt19937& random, std::int64_t elements) {
  std::vector<std::vector<ArenaRange>> units(1 + random() % 5);
  for (std::int64_t begin = 0; begin < elements;) {
    const std::int64_t end =
        std::min(elements, begin + 1 + static_cast<std::int64_t>(random() % 50));
    units[random() % units.size()].push_back({begin, end});
    begin = end;
  }
  std::vector<RangeSet> sets;
  for (const auto& ranges : units) sets.emplace_back(ranges);
  return sets;
}

TEST(UnitHomes, AreWholeChunksAndTogetherTheArenaOnce) {
  std::mt19937 random(1);
  for (int time = 0; time < 200; ++time) {
    const std::int64_t elements = 1 + static_cast<std::int64_t>(random() % 600);
    const int ranks = 1 + static_cast<int>(random() % 6);
    RangeSet all;
    std::int64_t sum = 0;
    for (const RangeSet& home :
         unit_homes(drawn_units(random, elements), elements, kChunk, ranks)) {
      for (const ArenaRange& range : home.ranges()) {
        EXPECT_EQ(range.begin % kChunk, 0);
        EXPECT_TRUE(range.end % kChunk == 0 || range.end == elements);
      }
      sum += home.elements();
      all = all.united(home);
    }
    EXPECT_EQ(sum, elements);
    EXPECT_EQ(all, (RangeSet{{0, elements}}));
  }
}

TEST(UnitHomes, DealEachUnitEvenly) {
  const std::vector<RangeSet> units = {RangeSet{{0, 64}}, RangeSet{{64, 96}}, RangeSet{{96, 200}}};
  const std::vector<RangeSet> homes = unit_homes(units, 200, kChunk, 3);
  for (const RangeSet& unit : units) {
    std::vector<std::int64_t> shares;
    for (const RangeSet& home : homes) shares.push_back(home.intersected(unit).elements());
    EXPECT_LE(std::ranges::max(shares) - std::ranges::min(shares), kChunk);
  }
}

TEST(SlicesOf, AreInOrderAndOneOfEachRankAtATime) {
  std::mt19937 random(2);
  for (int time = 0; time < 200; ++time) {
    const std::int64_t elements = 1 + static_cast<std::int64_t>(random() % 600);
    const int ranks = 1 + static_cast<int>(random() % 6);
    const std::vector<RangeSet> units = drawn_units(random, elements);
    const std::vector<RangeSet> homes = unit_homes(units, elements, kChunk, ranks);
    for (const RangeSet& unit : units) {
      for (const ArenaRange& range : unit.ranges()) {
        RangeSet covered;
        std::int64_t sum = 0;
        for (const HomeSlices& slices : slices_of(range, homes)) {
          ASSERT_EQ(slices.size(), static_cast<std::size_t>(ranks));
          for (std::size_t rank = 0; rank < slices.size(); ++rank) {
            EXPECT_TRUE(homes[rank].contains(slices[rank]));
            covered = covered.united({slices[rank]});
            sum += slices[rank].size();
          }
        }
        EXPECT_EQ(sum, range.size());
        EXPECT_EQ(covered, RangeSet{range});
      }
    }
  }
}

}  // namespace
}  // namespace rl
