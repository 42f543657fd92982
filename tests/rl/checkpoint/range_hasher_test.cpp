#include "rl/checkpoint/range_hasher.h"

#include <gtest/gtest.h>

#include <string>

namespace rl {
namespace {

std::string hash_of(const std::string& bytes) {
  runtime::Xxh3Hash hash;
  hash.add(bytes.data(), bytes.size());
  return hash.hex();
}

void add(RangeHasher& hasher, std::uint64_t offset, const std::string& bytes) {
  hasher.add(offset, std::as_bytes(std::span(bytes)));
}

TEST(RangeHasher, StretchesThatFollowAreOneRange) {
  RangeHasher hasher;
  const std::string bytes(100'000, 'x'), others(70'000, 'y');
  add(hasher, 1000, bytes);
  add(hasher, 101'000, others);
  add(hasher, 500'000, bytes);
  EXPECT_EQ(hasher.finish(), (std::vector<RangeHash>{{1000, 171'000, hash_of(bytes + others)},
                                                     {500'000, 600'000, hash_of(bytes)}}));
}

TEST(RangeHasher, RangesEndAtMultiplesOfTheirSize) {
  constexpr std::uint64_t kSize = RangeHasher::kRangeBytes;
  RangeHasher hasher;
  const std::string bytes(kSize + 200'000, 'x');
  add(hasher, kSize - 100'000, bytes);
  const std::vector<RangeHash> ranges = hasher.finish();
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0], (RangeHash{kSize - 100'000, kSize, hash_of(bytes.substr(0, 100'000))}));
  EXPECT_EQ(ranges[1], (RangeHash{kSize, 2 * kSize, hash_of(bytes.substr(0, kSize))}));
  EXPECT_EQ(ranges[2],
            (RangeHash{2 * kSize, 2 * kSize + 100'000, hash_of(bytes.substr(0, 100'000))}));
}

TEST(RangeHasher, ShortRangesAreLeftOut) {
  RangeHasher hasher;
  const std::string large(RangeHasher::kBytesMin, 'x'), small(RangeHasher::kBytesMin - 1, 'x');
  add(hasher, 0, small);
  add(hasher, 100'000, large);
  add(hasher, 300'000, small);
  EXPECT_EQ(hasher.finish(),
            (std::vector<RangeHash>{{100'000, 100'000 + large.size(), hash_of(large)}}));
  EXPECT_TRUE(RangeHasher().finish().empty());
}

}  // namespace
}  // namespace rl
