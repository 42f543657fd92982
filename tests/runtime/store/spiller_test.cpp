#include "runtime/store/spiller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/runtime/store/turned_disk.h"
#include "tests/support/temporary_folder.h"

namespace runtime::object_detail {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kPages = 10;
constexpr ExtentTable::Client kHolder = 7;
constexpr ExtentTable::Client kReader = 8;

// A store of ten pages, of which the spiller keeps two to three free.
class SpillerTest : public ::testing::Test {
 protected:
  SpillerTest() {
    auto segment = Segment::create(kPages * kPageBytes);
    EXPECT_TRUE(segment.ok()) << segment.status().to_string();
    memory_ = std::make_shared<StoreMemory>(loop_, *std::move(segment), ObjectStoreOptions());
  }
  /// With room for `disk_pages` on disk.
  void make(std::uint64_t disk_pages = 100) {
    auto folder = SpillFolder::open(folder_.path() / "spill");
    ASSERT_TRUE(folder.ok()) << folder.status().to_string();
    make(disk_pages, *std::move(folder));
  }
  void make(std::uint64_t disk_pages, std::unique_ptr<SpillFolder> folder) {
    SpillOptions options;
    options.limit_bytes = disk_pages * kPageBytes;
    spiller_ =
        std::make_shared<Spiller>(memory_, std::move(folder), options,
                                  [this](std::uint64_t bytes, UniqueFunction<void(bool)> done) {
                                    asked_bytes_.push_back(bytes);
                                    asked_ = std::move(done);
                                  });
    memory_->on_ended_on_disk = [this](std::uint64_t extent) { spiller_->forget(extent); };
  }
  /// A page whose bytes are all of that value.
  std::uint64_t add_page(char value) {
    auto extent = memory_->lease(kPageBytes, kHolder);
    EXPECT_TRUE(extent);
    if (!extent) return 0;
    std::memset(memory_->segment->writable() + extent->range.begin, value, kPageBytes);
    return extent->id;
  }
  std::vector<std::uint64_t> add_pages(std::size_t count) {
    std::vector<std::uint64_t> extents;
    for (std::size_t i = 0; i < count; ++i) extents.push_back(add_page(static_cast<char>('a' + i)));
    return extents;
  }
  void surrender(const std::vector<std::uint64_t>& extents) {
    for (std::uint64_t extent : extents) EXPECT_TRUE(memory_->table.surrender(extent, kHolder));
  }
  /// What a page that is here holds, if it is the same all over.
  char value_of(std::uint64_t extent) const {
    const ByteRange range = memory_->table.find(extent)->range;
    const std::byte* begin = memory_->segment->readable() + range.begin;
    const bool same =
        std::all_of(begin, begin + range.size, [&](std::byte b) { return b == *begin; });
    return same ? static_cast<char>(*begin) : '?';
  }
  bool is_here(std::uint64_t extent) const { return memory_->table.is_resident(extent); }
  std::size_t files() const {
    const std::filesystem::directory_iterator entries(folder_.path() / "spill");
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }
  /// Asks for a page that is on disk. The reader pins it, as the store does.
  void restore(std::uint64_t extent, std::chrono::milliseconds time = 1min) {
    ASSERT_TRUE(memory_->table.pin(extent, kReader));
    spiller_->restore(extent, deadline_after(time),
                      [this](Status status) { restored_.push_back(std::move(status)); });
    clock_.settle();
  }
  /// Moves the first pages of a store of nine to disk.
  std::vector<std::uint64_t> fill_and_spill(std::size_t count) {
    const auto pages = add_pages(9);
    surrender({pages.begin(), pages.begin() + static_cast<std::ptrdiff_t>(count)});
    spiller_->balance();
    clock_.operate_all();
    EXPECT_EQ(spiller_->spills(), std::min<std::size_t>(count, 2));
    return pages;
  }

  TurnedDisk clock_;
  support::TemporaryFolder folder_;
  EventLoop loop_;
  std::shared_ptr<StoreMemory> memory_;
  std::vector<std::uint64_t> asked_bytes_;
  UniqueFunction<void(bool)> asked_;
  std::vector<Status> restored_;
  std::shared_ptr<Spiller> spiller_;
};

TEST_F(SpillerTest, LetsAStoreFillUpToTheMark) {
  make();
  surrender(add_pages(8));
  spiller_->balance();
  EXPECT_EQ(clock_.waiting(), 0u);
  EXPECT_TRUE(asked_bytes_.empty());
}

TEST_F(SpillerTest, MovesWhatTheHoldersSurrender) {
  make();
  const auto pages = add_pages(9);
  spiller_->balance();
  EXPECT_EQ(asked_bytes_, std::vector<std::uint64_t>{2 * kPageBytes}) << "down to the low mark";
  spiller_->balance();
  EXPECT_EQ(asked_bytes_.size(), 1u) << "they have not answered yet";
  surrender({pages[4], pages[1], pages[0]});
  asked_(true);
  EXPECT_EQ(clock_.waiting(), 2u);
  clock_.operate_all();
  EXPECT_FALSE(is_here(pages[0]));
  EXPECT_FALSE(is_here(pages[1]));
  EXPECT_TRUE(is_here(pages[4])) << "two were enough";
  EXPECT_EQ(files(), 2u);
  EXPECT_EQ(spiller_->spills(), 2u);
  EXPECT_EQ(spiller_->spilled_bytes(), 2 * kPageBytes);
  EXPECT_EQ(asked_bytes_.size(), 1u);
}

TEST_F(SpillerTest, TakesWhatWasUsedLongestAgo) {
  make();
  const auto pages = add_pages(9);
  surrender(pages);
  for (std::uint64_t extent : {pages[0], pages[2]}) {
    ASSERT_TRUE(memory_->table.pin(extent, kReader));
    ASSERT_TRUE(memory_->table.unpin(extent, kReader));
  }
  spiller_->balance();
  clock_.operate_all();
  EXPECT_FALSE(is_here(pages[1]));
  EXPECT_FALSE(is_here(pages[3]));
  EXPECT_EQ(spiller_->spills(), 2u);
}

TEST_F(SpillerTest, BringsThePageBackAsItWas) {
  make();
  const auto pages = fill_and_spill(2);
  add_page('z');  // in the memory that became free
  restore(pages[1]);
  EXPECT_TRUE(restored_.empty()) << "the disk has not come to it";
  clock_.operate_all();
  ASSERT_EQ(restored_, std::vector<Status>{Status()});
  EXPECT_TRUE(is_here(pages[1]));
  EXPECT_EQ(value_of(pages[1]), 'b');
  EXPECT_EQ(spiller_->restores(), 1u);
  EXPECT_EQ(spiller_->spilled_bytes(), kPageBytes);
  EXPECT_EQ(files(), 1u);
}

TEST_F(SpillerTest, ReadsAPageOnceForAllThatAsk) {
  make();
  const auto pages = fill_and_spill(1);
  restore(pages[0]);
  restore(pages[0]);
  EXPECT_EQ(clock_.waiting(), 1u);
  clock_.operate();
  EXPECT_EQ(restored_, (std::vector<Status>{Status(), Status()}));
  EXPECT_EQ(spiller_->restores(), 1u);
}

TEST_F(SpillerTest, AFailedWriteChangesNothingAndIsTriedAgainInASecond) {
  make();
  const auto pages = add_pages(9);
  surrender({pages[0], pages[1]});
  spiller_->balance();
  clock_.operate(ENOSPC);
  clock_.operate(ENOSPC);
  EXPECT_TRUE(is_here(pages[0]));
  EXPECT_EQ(value_of(pages[0]), 'a');
  EXPECT_EQ(memory_->table.pins(), 0u);
  EXPECT_EQ(spiller_->spills(), 0u);
  EXPECT_EQ(files(), 0u);
  EXPECT_NE(spiller_->describe().find("No space left on device"), std::string::npos)
      << spiller_->describe();
  clock_.turn(999ms);
  EXPECT_EQ(clock_.waiting(), 0u);
  clock_.turn(501ms);
  EXPECT_EQ(clock_.waiting(), 2u);
  clock_.operate_all();
  EXPECT_FALSE(is_here(pages[0]));
  EXPECT_EQ(spiller_->describe().find("No space"), std::string::npos) << "it has gone since";
}

TEST_F(SpillerTest, APageThatIsReadMeanwhileStays) {
  make();
  const auto pages = add_pages(9);
  surrender({pages[0]});
  spiller_->balance();
  ASSERT_TRUE(memory_->table.pin(pages[0], kReader));
  clock_.operate();
  EXPECT_TRUE(is_here(pages[0]));
  EXPECT_EQ(files(), 0u);
  EXPECT_EQ(spiller_->spills(), 0u);
}

TEST_F(SpillerTest, APageThatEndsMeanwhileLeavesNoFile) {
  make();
  const auto pages = add_pages(9);
  surrender({pages[0]});
  spiller_->balance();
  ASSERT_TRUE(memory_->table.give_back(pages[0], kHolder));
  clock_.operate();
  EXPECT_FALSE(memory_->table.find(pages[0]));
  EXPECT_EQ(files(), 0u);
  EXPECT_EQ(spiller_->spilled_bytes(), 0u);
}

TEST_F(SpillerTest, APageThatEndsOnDiskTakesItsFileWithIt) {
  make();
  const auto pages = fill_and_spill(2);
  ASSERT_TRUE(memory_->table.give_back(pages[0], kHolder));
  memory_->changed();
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(spiller_->spilled_bytes(), kPageBytes);
}

TEST_F(SpillerTest, AFileThatCannotBeReadIsALostObject) {
  make();
  const auto pages = fill_and_spill(1);
  const std::uint64_t used = memory_->table.used_bytes();
  restore(pages[0]);
  clock_.operate(EIO);
  ASSERT_EQ(restored_.size(), 1u);
  EXPECT_EQ(restored_[0].code(), ErrorCode::kObjectLost);
  EXPECT_FALSE(is_here(pages[0]));
  EXPECT_EQ(memory_->table.used_bytes(), used);
  EXPECT_TRUE(memory_->take(kPageBytes));
  EXPECT_TRUE(memory_->take(kPageBytes)) << "what it was to come back to is free again";
}

TEST_F(SpillerTest, GivesUpWhenThereIsNoRoomByTheDeadline) {
  make();
  const auto pages = fill_and_spill(2);
  for (int i = 0; i < 3; ++i) add_page('z');
  restore(pages[0], 2s);
  clock_.turn(2s);
  ASSERT_EQ(restored_.size(), 1u);
  EXPECT_EQ(restored_[0], resource_exhausted("no room to bring it back from disk"));
  EXPECT_EQ(memory_->line->wanted_bytes(), 0u);
  EXPECT_EQ(files(), 2u) << "it may be asked for again";
  restore(pages[0]);
  surrender({pages[8]});
  clock_.turn(500ms);
  clock_.operate_all();
  ASSERT_EQ(restored_.size(), 2u);
  EXPECT_TRUE(restored_[1].ok()) << restored_[1].message();
  EXPECT_EQ(value_of(pages[0]), 'a');
  EXPECT_FALSE(is_here(pages[8]));
}

TEST_F(SpillerTest, WithMemoryAndDiskFullPagesChangePlaces) {
  make(1);
  const auto pages = add_pages(9);
  surrender({pages[0], pages[1]});
  spiller_->balance();
  clock_.operate_all();
  ASSERT_EQ(spiller_->spilled_bytes(), kPageBytes) << "as much as the disk may have";
  for (int i = 0; i < 2; ++i) add_page('z');
  ASSERT_EQ(memory_->table.used_bytes(), kPages * kPageBytes);
  restore(pages[0]);
  clock_.operate_all();
  ASSERT_EQ(restored_, std::vector<Status>{Status()});
  EXPECT_EQ(value_of(pages[0]), 'a');
  EXPECT_FALSE(is_here(pages[1]));
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(spiller_->spilled_bytes(), kPageBytes);
}

TEST_F(SpillerTest, HoldersThatHaveNothingAreAskedAgain) {
  make();
  add_pages(9);
  spiller_->balance();
  asked_(false);
  clock_.turn(499ms);
  EXPECT_EQ(asked_bytes_.size(), 1u);
  clock_.turn(1ms);
  EXPECT_EQ(asked_bytes_.size(), 2u);
  memory_->line->wait(
      2 * kPageBytes, kReader, deadline_after(1min), [] { return false; }, [] {});
  asked_(false);
  clock_.turn(20ms);
  EXPECT_EQ(asked_bytes_.size(), 3u) << "sooner when a client waits";
}

TEST_F(SpillerTest, CopiesOfOtherNodesGoBeforeAnythingIsWritten) {
  make();
  auto copy = memory_->lease(2 * kPageBytes, kStoreItself);
  ASSERT_TRUE(copy);
  surrender(add_pages(7));
  memory_->evict_copy = [&] { return memory_->table.give_back(copy->id, kStoreItself); };
  spiller_->balance();
  EXPECT_EQ(memory_->table.used_bytes(), 7 * kPageBytes);
  EXPECT_EQ(clock_.waiting(), 0u);
}

TEST_F(SpillerTest, WithoutAFolderNothingMoves) {
  make(100, nullptr);
  surrender(add_pages(9));
  spiller_->balance();
  EXPECT_TRUE(asked_bytes_.empty());
  EXPECT_EQ(clock_.waiting(), 0u);
  EXPECT_EQ(spiller_->describe(), ", spilling to disk is off");
}

TEST_F(SpillerTest, DoesNothingOnceStopped) {
  make();
  const auto pages = add_pages(9);
  surrender({pages[0]});
  spiller_->balance();
  spiller_->stop();
  clock_.operate_all();
  EXPECT_TRUE(is_here(pages[0])) << "what was being written is left where it is";
  EXPECT_EQ(files(), 0u);
  spiller_->balance();
  clock_.turn(1min);
  EXPECT_EQ(clock_.waiting(), 0u);
}

TEST_F(SpillerTest, EndsWhileTheDiskWorks) {
  make();
  surrender({add_pages(9)[0]});
  spiller_->balance();
  EXPECT_EQ(clock_.waiting(), 1u);
  memory_->on_ended_on_disk = nullptr;
  spiller_.reset();
  EXPECT_EQ(clock_.waiting(), 0u);
}

}  // namespace
}  // namespace runtime::object_detail
