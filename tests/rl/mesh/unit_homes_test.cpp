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

struct Ranks {
  int all = 1;
  int group = 1;
};

Ranks drawn_ranks(std::mt19937& random) {
  const int group = 1 + static_cast<int>(random() % 4);
  return {group * (1 + static_cast<int>(random() % 3)), group};
}

TEST(UnitHomes, AreWholeChunksAndTogetherTheArenaOnce) {
  std::mt19937 random(1);
  for (int time = 0; time < 200; ++time) {
    const std::int64_t elements = 1 + static_cast<std::int64_t>(random() % 600);
    const Ranks ranks = drawn_ranks(random);
    RangeSet all;
    std::int64_t sum = 0;
    for (const RangeSet& home :
         unit_homes(drawn_units(random, elements), elements, kChunk, ranks.all, ranks.group)) {
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
  for (const Ranks ranks : {Ranks{3, 3}, Ranks{4, 2}, Ranks{6, 2}, Ranks{4, 1}}) {
    const std::vector<RangeSet> homes = unit_homes(units, 200, kChunk, ranks.all, ranks.group);
    for (const RangeSet& unit : units) {
      std::vector<std::int64_t> shares;
      for (const RangeSet& home : homes) shares.push_back(home.intersected(unit).elements());
      EXPECT_LE(std::ranges::max(shares) - std::ranges::min(shares), kChunk)
          << ranks.all << " ranks in groups of " << ranks.group;
    }
  }
}

TEST(GroupHomes, HoldEachRanksHomeAndInEachGroupTheArenaOnce) {
  std::mt19937 random(3);
  for (int time = 0; time < 200; ++time) {
    const std::int64_t elements = 1 + static_cast<std::int64_t>(random() % 600);
    const Ranks ranks = drawn_ranks(random);
    const std::vector<RangeSet> units = drawn_units(random, elements);
    const std::vector<RangeSet> homes = unit_homes(units, elements, kChunk, ranks.all, ranks.group);
    const std::vector<RangeSet> kept = group_homes(homes, ranks.group);
    ASSERT_EQ(kept.size(), homes.size());
    std::vector<RangeSet> of_group(static_cast<std::size_t>(ranks.all / ranks.group));
    std::vector<std::int64_t> sums(of_group.size(), 0);
    for (std::size_t rank = 0; rank < kept.size(); ++rank) {
      const std::size_t group = rank / static_cast<std::size_t>(ranks.group);
      for (const ArenaRange& range : homes[rank].ranges())
        EXPECT_TRUE(kept[rank].contains(range)) << rank;
      of_group[group] = of_group[group].united(kept[rank]);
      sums[group] += kept[rank].elements();
      // Even, as if there were no ranks but those of the group.
      EXPECT_EQ(kept[rank], unit_homes(units, elements, kChunk, ranks.group,
                                       ranks.group)[rank % static_cast<std::size_t>(ranks.group)]);
    }
    for (std::size_t group = 0; group < of_group.size(); ++group) {
      EXPECT_EQ(of_group[group], (RangeSet{{0, elements}}));
      EXPECT_EQ(sums[group], elements) << "each once";
    }
  }
}

TEST(SlicesOf, AreInOrderAndOneOfEachRankAtATime) {
  std::mt19937 random(2);
  for (int time = 0; time < 200; ++time) {
    const std::int64_t elements = 1 + static_cast<std::int64_t>(random() % 600);
    const auto [ranks, group] = drawn_ranks(random);
    const std::vector<RangeSet> units = drawn_units(random, elements);
    const std::vector<RangeSet> homes = unit_homes(units, elements, kChunk, ranks, group);
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
