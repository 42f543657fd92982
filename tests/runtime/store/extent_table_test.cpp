#include "runtime/store/extent_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "runtime/store/range_set.h"
#include "runtime/store/segment.h"

namespace runtime {
namespace {

TEST(RangeSet, MergesNeighbours) {
  RangeSet set;
  set.add({0, 10});
  set.add({20, 10});
  EXPECT_EQ(set.largest(), 10u);
  set.add({10, 10});
  EXPECT_EQ(set.largest(), 30u);
  EXPECT_EQ(set.bytes(), 30u);
  EXPECT_EQ(set.take(5), (ByteRange{0, 5}));
  EXPECT_EQ(set.take_last(100), (ByteRange{5, 25}));
  EXPECT_EQ(set.take(1), std::nullopt);
  EXPECT_EQ(set.bytes(), 0u);
}

TEST(RangeSetDeath, OverlapIsABug) {
  RangeSet set;
  set.add({10, 10});
  EXPECT_DEATH(set.add({15, 10}), "check failed");
  EXPECT_DEATH(set.add({5, 6}), "check failed");
}

TEST(ExtentTable, ReusesMemoryThatIsThereAlready) {
  ExtentTable table(16 * kPageBytes);
  auto first = table.lease(3 * kPageBytes, 5);
  ASSERT_TRUE(first);
  EXPECT_TRUE(table.give_back(first->id, 5));
  auto second = table.lease(2 * kPageBytes + 1, 5);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->range, first->range);
  EXPECT_NE(second->id, first->id);
}

TEST(ExtentTable, KeepsPinnedRanges) {
  ExtentTable table(4 * kPageBytes);
  auto extent = table.lease(4 * kPageBytes, 5);
  ASSERT_TRUE(extent);
  EXPECT_TRUE(table.pin(extent->id, 6));
  EXPECT_TRUE(table.pin(extent->id, 6));
  EXPECT_FALSE(table.give_back(extent->id, 6));
  EXPECT_TRUE(table.give_back(extent->id, 5));
  EXPECT_FALSE(table.give_back(extent->id, 5));
  EXPECT_EQ(table.orphaned_bytes(), 4 * kPageBytes);
  EXPECT_FALSE(table.lease(1, 5));
  EXPECT_TRUE(table.unpin(extent->id, 6));
  EXPECT_FALSE(table.unpin(extent->id, 7));
  EXPECT_FALSE(table.lease(1, 5));
  EXPECT_TRUE(table.unpin(extent->id, 6));
  EXPECT_FALSE(table.unpin(extent->id, 6));
  EXPECT_FALSE(table.pin(extent->id, 6));
  EXPECT_TRUE(table.lease(1, 5));
}

// Random clients come, lease, pin and die; ranges never overlap and nothing is lost.
TEST(ExtentTable, LosesNothing) {
  constexpr std::uint64_t kPages = 64;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 rng(seed);
    ExtentTable table(kPages * kPageBytes);
    std::map<std::uint64_t, ByteRange> leased;  // extent -> range
    std::vector<std::pair<std::uint64_t, ExtentTable::Client>> pinned;
    for (int step = 0; step < 400; ++step) {
      ExtentTable::Client client = 2 + rng() % 4;
      switch (rng() % 6) {
        case 0:
        case 1:
          if (auto extent = table.lease(1 + rng() % (8 * kPageBytes), client)) {
            for (const auto& [id, range] : leased) {
              if (!table.find(id)) continue;
              EXPECT_TRUE(range.end() <= extent->range.begin || extent->range.end() <= range.begin);
            }
            leased[extent->id] = extent->range;
          }
          break;
        case 2:
          if (!leased.empty())
            table.give_back(
                std::next(leased.begin(), static_cast<long>(rng() % leased.size()))->first, client);
          break;
        case 3:
          if (!leased.empty()) {
            std::uint64_t id =
                std::next(leased.begin(), static_cast<long>(rng() % leased.size()))->first;
            if (table.pin(id, client)) pinned.emplace_back(id, client);
          }
          break;
        case 4:
          if (!pinned.empty()) {
            auto [id, who] = pinned.back();
            pinned.pop_back();
            table.unpin(id, who);
          }
          break;
        case 5:
          if (rng() % 10 == 0) table.drop(client);
          if (auto range = table.take_retained(3 * kPageBytes)) table.discarded(*range);
          break;
      }
    }
    for (ExtentTable::Client client = 2; client < 6; ++client) table.drop(client);
    EXPECT_EQ(table.pins(), 0u);
    EXPECT_EQ(table.leased_bytes() + table.orphaned_bytes(), 0u);
    while (auto range = table.take_retained(kPages * kPageBytes)) table.discarded(*range);
    EXPECT_TRUE(table.lease(kPages * kPageBytes, 2));
  }
}

TEST(ExtentTable, WhatTheStoreKeepsOutlivesItsHolderAndMayMove) {
  ExtentTable table(16 * kPageBytes);
  auto kept = table.lease(2 * kPageBytes, 7);
  ASSERT_TRUE(table.keep(kept->id));
  EXPECT_FALSE(table.keep(kept->id + 1));
  EXPECT_EQ(table.leased_bytes(), 2 * kPageBytes);
  table.drop(7);
  EXPECT_EQ(table.kept_bytes(), 2 * kPageBytes);
  EXPECT_EQ(table.used_bytes(), 2 * kPageBytes);
  ASSERT_EQ(table.vacatable(1).size(), 1u) << "no process writes it any more";
  table.vacate(kept->id);
  EXPECT_EQ(table.kept_bytes(), 0u);
  EXPECT_EQ(table.vacated_bytes(), 2 * kPageBytes);
  auto range = table.take(2 * kPageBytes);
  ASSERT_TRUE(table.settle(kept->id, *range));
  ASSERT_TRUE(table.pin(kept->id, 8));
  EXPECT_TRUE(table.unkeep(kept->id));
  EXPECT_FALSE(table.unkeep(kept->id));
  EXPECT_EQ(table.orphaned_bytes(), 2 * kPageBytes) << "a reader has it";
  ASSERT_TRUE(table.unpin(kept->id, 8));
  EXPECT_EQ(table.used_bytes(), 0u);
}

TEST(ExtentTable, NamesSharedOnesWhenTheyEnd) {
  ExtentTable table(16 * kPageBytes);
  auto one = table.lease(kPageBytes, 7), two = table.lease(kPageBytes, 7);
  table.mark_shared(one->id);
  EXPECT_EQ(table.leases_of(7).size(), 2u);
  EXPECT_EQ(table.holder_of(one->id), 7u);
  table.drop(7);
  EXPECT_EQ(table.holder_of(two->id), 0u);
  EXPECT_EQ(table.take_ended_shared(), std::vector<std::uint64_t>{one->id});
  EXPECT_TRUE(table.take_ended_shared().empty());
}

}  // namespace
}  // namespace runtime
