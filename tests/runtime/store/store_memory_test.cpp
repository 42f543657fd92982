// A store's memory: whom it takes room from, what it keeps, and what goes back to the system.
#include "runtime/store/store_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "tests/support/turned_clock.h"

namespace runtime::object_detail {
namespace {

using namespace std::chrono_literals;

// Ten pages, of which two may stay retained for longer than a second.
class StoreMemoryTest : public ::testing::Test {
 protected:
  static constexpr ExtentTable::Client kOwner = 7;

  StoreMemoryTest() {
    auto segment = Segment::create(10 * kPageBytes);
    EXPECT_TRUE(segment.ok()) << segment.status().to_string();
    ObjectStoreOptions options;
    options.retained_bytes_max = 2 * kPageBytes;
    options.retained_for = 1s;
    memory_ = std::make_shared<StoreMemory>(loop_, *std::move(segment), options);
  }
  std::optional<Extent> lease(std::uint64_t pages) {
    return memory_->lease(pages * kPageBytes, kOwner);
  }
  void give_back(const Extent& extent) {
    EXPECT_TRUE(memory_->table.give_back(extent.id, kOwner));
    memory_->changed();
  }
  std::uint64_t retained_pages() const { return memory_->table.retained_bytes() / kPageBytes; }

  support::TurnedClock clock_;
  EventLoop loop_;
  std::shared_ptr<StoreMemory> memory_;
};

TEST_F(StoreMemoryTest, CopiesAreDroppedUntilThereIsRoomAndNoFurther) {
  std::vector<Extent> copies;
  for (int i = 0; i < 5; ++i) copies.push_back(*lease(2));
  memory_->evict_copy = [&] {
    if (copies.empty()) return false;
    memory_->table.give_back(copies.back().id, kOwner);
    copies.pop_back();
    return true;
  };
  EXPECT_TRUE(lease(3));
  EXPECT_EQ(copies.size(), 3u);
  EXPECT_FALSE(memory_->lease(11 * kPageBytes, kOwner)) << "which never fits";
  EXPECT_EQ(copies.size(), 3u);
  EXPECT_TRUE(memory_->take(2 * kPageBytes));
  EXPECT_EQ(copies.size(), 2u);
  EXPECT_FALSE(lease(6)) << "the lease and the range that was taken stay";
  EXPECT_TRUE(copies.empty());
}

TEST_F(StoreMemoryTest, FreeMemoryWithAndWithoutPagesIsOneRange) {
  const Extent first = *lease(5);
  give_back(first);
  EXPECT_EQ(retained_pages(), 5u);
  memory_->evict_copy = []() -> bool {
    ADD_FAILURE() << "there is room";
    return false;
  };
  const std::optional<Extent> all = lease(10);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->range.size, 10 * kPageBytes);
  EXPECT_EQ(retained_pages(), 0u);
}

TEST_F(StoreMemoryTest, WhatStaysUnusedGoesBackButForALimit) {
  const Extent extent = *lease(6);
  give_back(extent);
  clock_.turn(1s - 1ns);
  EXPECT_EQ(retained_pages(), 6u);
  clock_.turn(1ns);
  EXPECT_EQ(retained_pages(), 2u);
}

TEST_F(StoreMemoryTest, WhatWasUsedMeanwhileHasItsTimeAgain) {
  const Extent extent = *lease(6);
  give_back(extent);
  clock_.turn(500ms);
  give_back(*lease(6));
  clock_.turn(500ms);
  EXPECT_EQ(retained_pages(), 6u) << "no page was unused for all that time";
  clock_.turn(1s);
  EXPECT_EQ(retained_pages(), 2u);
}

TEST_F(StoreMemoryTest, WhatIsAskedForGoesBackWithoutALimit) {
  const Extent extent = *lease(6);
  give_back(extent);
  EXPECT_EQ(memory_->give_back_free(), 6 * kPageBytes);
  clock_.settle();
  EXPECT_EQ(retained_pages(), 0u);
  EXPECT_EQ(memory_->give_back_free(), 0u);
}

TEST_F(StoreMemoryTest, WhatIsHeldOutlivesItsOwnerAndThoseInLineAreServedThen) {
  const Extent extent = *lease(10);
  std::shared_ptr<void> held = memory_->hold(extent.id);
  ASSERT_EQ(held.use_count(), 1) << "it is a count without a pointer";
  int served = 0;
  memory_->line->wait(
      kPageBytes, kOwner, deadline_after(1h), [&] { return lease(1) && ++served > 0; },
      [] { FAIL() << "it has time"; });
  give_back(extent);
  EXPECT_EQ(served, 0);
  held.reset();
  EXPECT_EQ(served, 0) << "the loop does it";
  clock_.settle();
  EXPECT_EQ(served, 1);
  EXPECT_FALSE(memory_->table.find(extent.id));
  EXPECT_EQ(memory_->hold(extent.id).use_count(), 0);
}

TEST_F(StoreMemoryTest, TellsOfTheEndsOfWhatOthersHave) {
  std::vector<std::uint64_t> on_disk, shared;
  memory_->on_ended_on_disk = [&](std::uint64_t extent) { on_disk.push_back(extent); };
  memory_->on_ended_shared = [&](std::uint64_t extent) { shared.push_back(extent); };
  const Extent plain = *lease(1), copied = *lease(1), vacated = *lease(1);
  memory_->table.mark_shared(copied.id);
  EXPECT_TRUE(memory_->table.surrender(vacated.id, kOwner));
  memory_->table.vacate(vacated.id);
  for (const Extent& extent : {plain, copied, vacated}) give_back(extent);
  memory_->changed();
  EXPECT_EQ(on_disk, std::vector<std::uint64_t>{vacated.id});
  EXPECT_EQ(shared, std::vector<std::uint64_t>{copied.id});
}

}  // namespace
}  // namespace runtime::object_detail
