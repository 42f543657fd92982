#include "rl/model/arena_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rl {
namespace {

constexpr std::int64_t kPage = 1024;  // elements
constexpr std::int64_t kPages = 8;

class ArenaPagesTest : public ::testing::Test {
 protected:
  // Begins in the midst of a page, as what is allocated does.
  ArenaPagesTest() : memory_((kPages + 2) * kPage, 1.0F) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    const std::uintptr_t next = (address + 4095) / 4096 * 4096;
    arena_ = {reinterpret_cast<float*>(next) - 16, static_cast<std::size_t>(kPages * kPage + 32)};
    if (arena_.data() < memory_.data()) arena_ = {arena_.data() + kPage, arena_.size() - kPage};
  }

  bool is_resident(std::int64_t element) const {
    unsigned char state = 0;
    const auto address = reinterpret_cast<std::uintptr_t>(arena_.data() + element) / 4096 * 4096;
    EXPECT_EQ(::mincore(reinterpret_cast<void*>(address), 1, &state), 0);
    return (state & 1) != 0;
  }
  // Of those from this element on, how many pages have memory.
  std::int64_t residents(std::int64_t begin, std::int64_t pages) const {
    std::int64_t count = 0;
    for (std::int64_t page = 0; page < pages; ++page) count += is_resident(begin + page * kPage);
    return count;
  }
  // The first element of a page that is the arena's alone.
  std::int64_t first_page() const {
    const auto address = reinterpret_cast<std::uintptr_t>(arena_.data());
    return static_cast<std::int64_t>((address + 4095) / 4096 * 4096 - address) / 4;
  }
  void fill(std::int64_t begin, std::int64_t end, float value) {
    std::fill(arena_.data() + begin, arena_.data() + end, value);
  }
  // The memory of the first two pages alone, which were written, is kept.
  void keep_two_written(ArenaPages& pages) {
    pages.give_back(all());
    pages.release();
    const std::int64_t begin = first_page();
    pages.take({{begin, begin + 2 * kPage}});
    fill(begin, begin + 2 * kPage, 3.0F);
    pages.give_back({{begin, begin + 2 * kPage}});
  }
  RangeSet all() const { return {{0, std::ssize(arena_)}}; }

  std::vector<float> memory_;
  std::span<float> arena_;
};

TEST_F(ArenaPagesTest, WhatIsGivenBackHasNoMemoryAndIsZeroWhenTakenAgain) {
  ArenaPages pages(arena_);
  const std::int64_t whole = pages.there();
  EXPECT_GE(whole, (kPages - 2) * kPage);
  pages.give_back(all());
  EXPECT_EQ(pages.there(), 0);
  EXPECT_FALSE(is_resident(2 * kPage));
  pages.take_zeros({{0, 10}, {2 * kPage, 3 * kPage}});
  EXPECT_EQ(pages.there(), 2 * kPage) << "it lies on two pages";
  EXPECT_EQ(arena_[2 * kPage + 100], 0.0F);
  EXPECT_EQ(arena_[0], 0.0F) << "on a page that is not the arena's alone";
  arena_[2 * kPage + 100] = 3.0F;
  EXPECT_TRUE(is_resident(2 * kPage + 100));
  EXPECT_EQ(memory_.front(), 1.0F) << "of another";
}

TEST_F(ArenaPagesTest, WhatIsForgottenHasNoMemoryAndMayBeWrittenAgain) {
  ArenaPages pages(arena_);
  const std::int64_t whole = pages.there();
  const std::int64_t begin = kPage + 100, end = 4 * kPage + 100;
  pages.forget({begin, end});
  EXPECT_EQ(pages.there(), whole) << "they may be used as before";
  EXPECT_FALSE(is_resident(2 * kPage + 100));
  EXPECT_FALSE(is_resident(3 * kPage + 100));
  for (const std::int64_t others : {std::int64_t{0}, begin - 1, end, std::ssize(arena_) - 1})
    EXPECT_EQ(arena_[static_cast<std::size_t>(others)], 1.0F) << others;
  arena_[2 * kPage + 100] = 5.0F;
  EXPECT_TRUE(is_resident(2 * kPage + 100));
  pages.forget({begin, begin + 10});
  pages.forget({0, 10});
  EXPECT_EQ(arena_[begin], 1.0F) << "no page is within";
  EXPECT_EQ(memory_.front(), 1.0F);
}

TEST_F(ArenaPagesTest, APageOfTwoStaysWhileOneOfThemIsThere) {
  ArenaPages pages(arena_);
  pages.give_back(all());
  const RangeSet first{{0, 2 * kPage}}, second{{2 * kPage, 4 * kPage}};
  pages.take(first);
  pages.take(second);
  arena_[2 * kPage - 1] = 5.0F;
  arena_[2 * kPage] = 6.0F;
  pages.give_back(first);
  EXPECT_EQ(arena_[2 * kPage], 6.0F);
  pages.take_zeros(first);
  EXPECT_EQ(arena_[2 * kPage], 6.0F);
  EXPECT_EQ(arena_[2 * kPage - 1], 0.0F) << "of the first, on the page that stayed";
  pages.give_back(first);
  pages.give_back(second);
  EXPECT_EQ(pages.there(), 0);
}

TEST_F(ArenaPagesTest, MemoryThatIsGivenBackMovesToWhatIsTakenNext) {
  ArenaPages pages(arena_, 2 * kPage);
  keep_two_written(pages);
  const std::int64_t begin = first_page();
  pages.reset_most();
  pages.take({{begin + 4 * kPage, begin + 6 * kPage}});
  EXPECT_EQ(pages.most(), 2 * kPage) << "of the first, whose memory it is now";
  EXPECT_TRUE(is_resident(begin + 4 * kPage));
  EXPECT_TRUE(is_resident(begin + 5 * kPage));
  EXPECT_FALSE(is_resident(begin));
  EXPECT_FALSE(is_resident(begin + kPage));
  fill(begin + 4 * kPage, begin + 6 * kPage, 4.0F);
  pages.take_zeros({{begin, begin + 2 * kPage}});
  EXPECT_EQ(arena_[begin], 0.0F);
  EXPECT_EQ(arena_[begin + 4 * kPage], 4.0F);
}

TEST_F(ArenaPagesTest, MemoryThatMovedIsZeroWhereZerosAreTaken) {
  ArenaPages pages(arena_, 2 * kPage);
  keep_two_written(pages);
  const std::int64_t begin = first_page();
  // Its second page stays where it is, the first goes behind it, and one is new.
  pages.take_zeros({{begin + kPage, begin + 4 * kPage}});
  for (std::int64_t i = begin + kPage; i < begin + 4 * kPage; ++i)
    ASSERT_EQ(arena_[static_cast<std::size_t>(i)], 0.0F) << i - begin;
  EXPECT_FALSE(is_resident(begin));
}

TEST_F(ArenaPagesTest, NoMoreIsKeptThanMayBeAndNothingAfterRelease) {
  ArenaPages pages(arena_, 2 * kPage);
  const std::int64_t begin = first_page();
  fill(begin, begin + 5 * kPage, 3.0F);
  pages.give_back({{begin, begin + 5 * kPage}});
  EXPECT_EQ(residents(begin, 5), 2);
  pages.give_back({{begin + 5 * kPage, begin + 6 * kPage}});
  EXPECT_EQ(residents(begin, 6), 2);
  pages.release();
  EXPECT_EQ(residents(begin, 6), 0);
}

TEST_F(ArenaPagesTest, TheMostIsCounted) {
  ArenaPages pages(arena_);
  pages.give_back(all());
  pages.reset_most();
  pages.take({{kPage, 2 * kPage}});
  pages.take({{4 * kPage, 5 * kPage}});
  const std::int64_t both = pages.there();
  pages.give_back({{kPage, 2 * kPage}});
  EXPECT_EQ(pages.most(), both);
  pages.reset_most();
  EXPECT_EQ(pages.most(), pages.there());
}

TEST_F(ArenaPagesTest, AllMayBeUsedWhenItHasGone) {
  {
    ArenaPages pages(arena_);
    pages.give_back(all());
  }
  for (float& value : arena_) value = 2.0F;
  EXPECT_EQ(arena_[3 * kPage], 2.0F);
}

using ArenaPagesDeathTest = ArenaPagesTest;

TEST_F(ArenaPagesDeathTest, WhatWasGivenBackMayNotBeRead) {
  ArenaPages pages(arena_);
  pages.give_back(all());
  EXPECT_DEATH((void)*const_cast<volatile float*>(&arena_[3 * kPage]), "");
}

TEST_F(ArenaPagesDeathTest, WhatWasGivenBackMayNotBeReadThoughItsMemoryIsKept) {
  ArenaPages pages(arena_, 8 * kPage);
  pages.give_back(all());
  EXPECT_DEATH((void)*const_cast<volatile float*>(&arena_[3 * kPage]), "");
}

}  // namespace
}  // namespace rl
