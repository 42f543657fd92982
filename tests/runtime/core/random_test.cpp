#include "runtime/core/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace runtime {
namespace {

TEST(FillRandom, FillsAllOfItAnewEachTime) {
  std::array<std::byte, 256> first{}, second{};
  fill_random(first);
  fill_random(second);
  EXPECT_NE(first, second);
  std::array<std::byte, 16> zeros{};
  for (const std::byte* from = first.data(); from != first.data() + 256; from += 16)
    EXPECT_NE(std::memcmp(from, zeros.data(), 16), 0) << "a part was left as it was";
  fill_random({});
}

TEST(FillRandomDeathTest, MoreThanTheKernelGivesAtOnceIsABug) {
  std::array<std::byte, 257> much{};
  EXPECT_DEATH(fill_random(much), "check failed");
}

}  // namespace
}  // namespace runtime
