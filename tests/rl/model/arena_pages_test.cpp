#include "rl/model/arena_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

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
  RangeSet all() const { return {{0, std::ssize(arena_)}}; }

  std::vector<float> memory_;
  std::span<float> arena_;
};

TEST_F(ArenaPagesTest, WhatIsGivenBackHasNoMemoryAndIsZeroWhenTakenAgain) {
  ArenaPages pages(arena_);
  const std::int64_t whole = pages.there();
  EXPECT_GE(whole, (kPages - 2) * kPage);
  pages.give_back_zeros(all());
  EXPECT_EQ(pages.there(), 0);
  EXPECT_FALSE(is_resident(2 * kPage));
  pages.take({{2 * kPage, 3 * kPage}});
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
  pages.give_back_zeros(first);
  EXPECT_EQ(arena_[2 * kPage], 6.0F);
  EXPECT_EQ(arena_[2 * kPage - 1], 0.0F) << "of the first, on the page that stays";
  pages.give_back(second);
  EXPECT_EQ(pages.there(), 0);
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

}  // namespace
}  // namespace rl
