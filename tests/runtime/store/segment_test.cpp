#include "runtime/store/segment.h"

#include <gtest/gtest.h>

#include <cstring>

namespace runtime {
namespace {

constexpr std::uint64_t kBytes = 16 << 20;

TEST(Segment, KnowsWhichPagesThisProcessHasTouched) {
  auto segment = Segment::create(kBytes);
  ASSERT_TRUE(segment.ok()) << segment.status().to_string();
  EXPECT_FALSE((*segment)->is_populated(0, kBytes / 2));
  ASSERT_TRUE((*segment)->populate(0, kBytes / 2).ok());
  if (!(*segment)->is_populated(0, kPageBytes))
    GTEST_SKIP() << "no /proc/self/pagemap, or a kernel without MADV_POPULATE_WRITE";
  EXPECT_TRUE((*segment)->is_populated(0, kBytes / 2));
  EXPECT_FALSE((*segment)->is_populated(0, kBytes));
  EXPECT_FALSE((*segment)->is_populated(kBytes / 2, kPageBytes));
  EXPECT_FALSE((*segment)->is_populated(0, 0));
}

TEST(Segment, DiscardedPagesAreNoLongerPopulatedAndReadAsZero) {
  auto segment = Segment::create(kBytes);
  ASSERT_TRUE(segment.ok()) << segment.status().to_string();
  ASSERT_TRUE((*segment)->populate(0, kBytes).ok());
  std::memset((*segment)->writable(), 7, kBytes);
  (*segment)->discard(0, kBytes / 2);
  EXPECT_FALSE((*segment)->is_populated(0, kBytes));
  EXPECT_EQ((*segment)->readable()[0], std::byte{0});
  EXPECT_EQ((*segment)->readable()[kBytes - 1], std::byte{7});
}

}  // namespace
}  // namespace runtime
