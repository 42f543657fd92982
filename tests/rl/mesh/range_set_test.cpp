#include "rl/mesh/range_set.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace rl {
namespace {

constexpr std::int64_t kSpace = 60;

RangeSet drawn(std::mt19937& random) {
  std::vector<ArenaRange> ranges;
  for (unsigned i = random() % 6; i > 0; --i) {
    const std::int64_t begin = random() % kSpace;
    ranges.push_back({begin, begin + static_cast<std::int64_t>(random() % 12)});
  }
  return RangeSet(ranges);
}

std::vector<bool> bits(const RangeSet& set) {
  std::vector<bool> bits(kSpace + 12, false);
  for (const ArenaRange& range : set.ranges())
    for (std::int64_t i = range.begin; i < range.end; ++i) bits[static_cast<std::size_t>(i)] = true;
  return bits;
}

// Against sets of single elements.
TEST(RangeSet, IsASetOfElements) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const RangeSet a = drawn(random);
    const RangeSet b = drawn(random);
    const std::vector<bool> of_a = bits(a), of_b = bits(b);
    std::vector<bool> both = of_a, either = of_a, rest = of_a;
    std::int64_t count = 0;
    for (std::size_t i = 0; i < of_a.size(); ++i) {
      both[i] = of_a[i] && of_b[i];
      either[i] = of_a[i] || of_b[i];
      rest[i] = of_a[i] && !of_b[i];
      count += of_a[i] ? 1 : 0;
    }
    ASSERT_EQ(bits(a.intersected(b)), both);
    ASSERT_EQ(bits(a.united(b)), either);
    ASSERT_EQ(bits(a.without(b)), rest);
    ASSERT_EQ(a.elements(), count);
    for (const ArenaRange& range : b.ranges()) {
      bool all = true;
      for (std::int64_t i = range.begin; i < range.end; ++i)
        all = all && of_a[static_cast<std::size_t>(i)];
      ASSERT_EQ(a.contains(range), all);
    }
    // One form of each set: sorted ranges that do not touch.
    for (std::size_t i = 1; i < a.ranges().size(); ++i)
      ASSERT_LT(a.ranges()[i - 1].end, a.ranges()[i].begin);
  }
}

TEST(RangeSet, PartsCoverItOnceAndDifferByOneUnit) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    const RangeSet set = drawn(random);
    const std::int64_t unit = 1 + static_cast<std::int64_t>(random() % 4);
    const auto parts = static_cast<std::int64_t>(1 + random() % 5);
    RangeSet all;
    for (std::int64_t index = 0; index < parts; ++index) {
      const RangeSet part = set.part(parts, index, unit);
      ASSERT_TRUE(all.intersected(part).empty());
      all = all.united(part);
      std::int64_t units = 0;
      for (const ArenaRange& range : set.ranges()) units += (range.size() + unit - 1) / unit;
      ASSERT_LE(part.elements(), (units + parts - 1) / parts * unit);
    }
    ASSERT_EQ(all, set);
  }
}

}  // namespace
}  // namespace rl
