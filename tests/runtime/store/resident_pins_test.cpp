#include "runtime/store/resident_pins.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/runtime/store/turned_disk.h"
#include "tests/support/temporary_folder.h"

namespace runtime::object_detail {
namespace {

using namespace std::chrono_literals;

// A store of ten pages, of which some are on disk.
class ResidentPinsTest : public ::testing::Test {
 protected:
  static constexpr ExtentTable::Client kOwner = 7;
  static constexpr ExtentTable::Client kPinner = 8;

  ResidentPinsTest() {
    auto segment = Segment::create(10 * kPageBytes);
    EXPECT_TRUE(segment.ok()) << segment.status().to_string();
    memory_ = std::make_shared<StoreMemory>(loop_, *std::move(segment), ObjectStoreOptions());
    auto folder = SpillFolder::open(folder_.path() / "spill");
    EXPECT_TRUE(folder.ok()) << folder.status().to_string();
    SpillOptions options;
    options.limit_bytes = 100 * kPageBytes;
    spiller_ = std::make_shared<Spiller>(
        memory_, *std::move(folder), options,
        [](std::uint64_t, UniqueFunction<void(bool)> done) { done(false); });
    memory_->on_ended_on_disk = [this](std::uint64_t extent) { spiller_->forget(extent); };
    pins_ = std::make_unique<ResidentPins>(memory_, spiller_, ended_);
  }
  std::uint64_t add_page(char value) {
    auto extent = memory_->lease(kPageBytes, kOwner);
    EXPECT_TRUE(extent);
    std::memset(memory_->segment->writable() + extent->range.begin, value, kPageBytes);
    return extent->id;
  }
  /// A page on disk, in a store that nine others fill.
  std::uint64_t page_on_disk() {
    const std::uint64_t page = add_page('d');
    for (int i = 0; i < 8; ++i) add_page('m');
    EXPECT_TRUE(memory_->table.surrender(page, kOwner));
    spiller_->balance();
    disk_.operate_all();
    EXPECT_FALSE(memory_->table.is_resident(page));
    return page;
  }
  void pin(std::uint64_t extent, std::chrono::milliseconds patience = 1min) {
    pins_->pin(extent, kPinner, deadline_after(patience),
               [this](Result<Extent> pinned) { pinned_.push_back(std::move(pinned)); });
    disk_.settle();
  }
  char value_at(const Extent& extent) const {
    return static_cast<char>(memory_->segment->readable()[extent.range.begin]);
  }

  TurnedDisk disk_;
  support::TemporaryFolder folder_;
  EventLoop loop_;
  std::shared_ptr<StoreMemory> memory_;
  std::shared_ptr<Spiller> spiller_;
  const std::shared_ptr<EndedOwners> ended_ =
      std::make_shared<EndedOwners>(NodeId{}, [](pid_t) { return std::string("killed"); });
  std::vector<Result<Extent>> pinned_;
  std::unique_ptr<ResidentPins> pins_;
};

TEST_F(ResidentPinsTest, WhatIsInMemoryIsPinnedAtOnce) {
  const std::uint64_t page = add_page('a');
  pins_->pin(page, kPinner, deadline_after(1min),
             [this](Result<Extent> pinned) { pinned_.push_back(std::move(pinned)); });
  ASSERT_EQ(pinned_.size(), 1u) << "before it returns";
  ASSERT_TRUE(pinned_[0].ok());
  EXPECT_EQ(pinned_[0]->id, page);
  EXPECT_EQ(memory_->table.pins_of(page), 1u);
  EXPECT_FALSE(memory_->table.unpin(page, kOwner)) << "the pin is the one's who asked";
  EXPECT_TRUE(memory_->table.unpin(page, kPinner));
}

TEST_F(ResidentPinsTest, SaysWhoseEndWasTheExtentsEnd) {
  const std::uint64_t page = add_page('a');
  PeerInfo owner;
  owner.role = Role::kDriver;
  owner.pid = 17;
  ended_->note({page}, owner);
  memory_->table.drop(kOwner);
  pin(page);
  ASSERT_EQ(pinned_.size(), 1u);
  EXPECT_EQ(pinned_[0].status().code(), ErrorCode::kObjectLost);
  EXPECT_NE(pinned_[0].status().message().find("driver (pid 17"), std::string::npos)
      << pinned_[0].status().message();
}

TEST_F(ResidentPinsTest, WhatIsOnDiskComesBackFirst) {
  const std::uint64_t page = page_on_disk();
  pin(page);
  pin(page);
  EXPECT_TRUE(pinned_.empty()) << "the disk has not come to it";
  disk_.operate_all();
  ASSERT_EQ(pinned_.size(), 2u);
  for (const Result<Extent>& pinned : pinned_) {
    ASSERT_TRUE(pinned.ok()) << pinned.status().to_string();
    EXPECT_EQ(pinned->id, page);
    EXPECT_EQ(value_at(*pinned), 'd') << "where it is now";
  }
  EXPECT_EQ(memory_->table.pins_of(page), 2u);
}

TEST_F(ResidentPinsTest, WhatCannotBeReadIsNotPinned) {
  const std::uint64_t page = page_on_disk();
  pin(page);
  disk_.operate(EIO);
  ASSERT_EQ(pinned_.size(), 1u);
  EXPECT_FALSE(pinned_[0].ok());
  EXPECT_EQ(memory_->table.pins_of(page), 0u);
}

TEST_F(ResidentPinsTest, NorIsWhatFindsNoRoom) {
  const std::uint64_t page = page_on_disk();
  while (memory_->table.lease(kPageBytes, kOwner)) {
  }
  pin(page, 10ms);
  EXPECT_TRUE(pinned_.empty());
  disk_.turn(10ms);
  ASSERT_EQ(pinned_.size(), 1u);
  EXPECT_EQ(pinned_[0].status().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(memory_->table.pins_of(page), 0u);
}

TEST_F(ResidentPinsTest, AnExtentThatEndsOnTheWayIsLost) {
  const std::uint64_t page = page_on_disk();
  pin(page);
  EXPECT_TRUE(memory_->table.give_back(page, kOwner));
  memory_->table.drop(kPinner);  // the one that asked has died
  memory_->changed();
  disk_.operate_all();
  ASSERT_EQ(pinned_.size(), 1u);
  EXPECT_EQ(pinned_[0].status().code(), ErrorCode::kObjectLost);
}

}  // namespace
}  // namespace runtime::object_detail
