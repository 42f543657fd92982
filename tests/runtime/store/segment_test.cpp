#include "runtime/store/segment.h"

#include <gtest/gtest.h>

#include <cstring>

namespace runtime {
namespace {

constexpr std::uint64_t kSegmentBytes = 16 << 20;

TEST(Segment, KnowsWhichPagesThisProcessHasTouched) {
  auto segment = Segment::create(kSegmentBytes);
  ASSERT_TRUE(segment.ok()) << segment.status().to_string();
  EXPECT_FALSE((*segment)->is_populated(0, kSegmentBytes / 2));
  ASSERT_TRUE((*segment)->populate(0, kSegmentBytes / 2).ok());
  if (!(*segment)->is_populated(0, kPageBytes))
    GTEST_SKIP() << "no /proc/self/pagemap, or a kernel without MADV_POPULATE_WRITE";
  EXPECT_TRUE((*segment)->is_populated(0, kSegmentBytes / 2));
  EXPECT_FALSE((*segment)->is_populated(0, kSegmentBytes));
  EXPECT_FALSE((*segment)->is_populated(kSegmentBytes / 2, kPageBytes));
  EXPECT_FALSE((*segment)->is_populated(0, 0));
}

TEST(Segment, DiscardedPagesAreNoLongerPopulatedAndReadAsZero) {
  auto segment = Segment::create(kSegmentBytes);
  ASSERT_TRUE(segment.ok()) << segment.status().to_string();
  ASSERT_TRUE((*segment)->populate(0, kSegmentBytes).ok());
  std::memset((*segment)->writable(), 7, kSegmentBytes);
  (*segment)->discard(0, kSegmentBytes / 2);
  EXPECT_FALSE((*segment)->is_populated(0, kSegmentBytes));
  EXPECT_EQ((*segment)->readable()[0], std::byte{0});
  EXPECT_EQ((*segment)->readable()[kSegmentBytes - 1], std::byte{7});
}

}  // namespace
}  // namespace runtime
