#include "rl/optim/home_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "rl/optim/optimizer.h"
#include "tests/rl/optim/sharing_ranks.h"

namespace rl {
namespace {

using testing::on_sharing_ranks;

// Of the last chunk there are a few elements only.
constexpr std::int64_t kHomeElements = 38 * kNormChunk + 16;

RangeSet chunk_range(std::int64_t first, std::int64_t end) {
  return RangeSet{{first * kNormChunk, std::min(end * kNormChunk, kHomeElements)}};
}

// Homes of several ranges that lie between those of others; one is larger than a piece.
std::vector<PackedRanges> scattered_homes() {
  return {PackedRanges(chunk_range(0, 1).united(chunk_range(36, 37))),
          PackedRanges(chunk_range(1, 20).united(chunk_range(21, 36))),
          PackedRanges(chunk_range(20, 21).united(chunk_range(37, 39)))};
}

std::vector<float> exchanged_values() {
  std::vector<float> values(static_cast<std::size_t>(kHomeElements));
  std::uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(state >> 8) * 0x1.0p-23F - 1.0F;
  }
  return values;
}

std::vector<float> packed_values(const PackedRanges& home, std::span<const float> whole) {
  std::vector<float> packed;
  for (const ArenaRange& range : home.set().ranges()) {
    const std::span<const float> part = part_of(whole, range);
    packed.insert(packed.end(), part.begin(), part.end());
  }
  return packed;
}

// `check(norm)` on each rank, of which each has its homes of the values.
void on_norm(const std::vector<float>& whole, const std::function<void(double)>& check) {
  const std::vector<PackedRanges> homes = scattered_homes();
  on_sharing_ranks(3, [&](Communicator& communicator) {
    kernel::ThreadPool pool(1);
    const PackedRanges& home = homes[static_cast<std::size_t>(communicator.rank())];
    const auto norm = norm_of_homes(communicator, pool, homes, packed_values(home, whole));
    ASSERT_TRUE(norm.ok()) << norm.status().to_string();
    check(*norm);
  });
}

TEST(HomeExchange, TheNormHasTheBitsOfTheWholeOnEveryRank) {
  const std::vector<float> whole = exchanged_values();
  on_norm(whole, [&](double norm) {
    kernel::ThreadPool pool(1);
    EXPECT_EQ(norm, l2_norm(pool, whole));
  });
}

TEST(HomeExchange, ANormThatIsNotFiniteShowsOnEveryRank) {
  std::vector<float> whole = exchanged_values();
  whole.back() = std::numeric_limits<float>::infinity();  // at home on the last rank
  on_norm(whole, [](double norm) { EXPECT_FALSE(std::isfinite(norm)); });
}

TEST(HomeExchange, AllHomesComeToTheirPlacesOnTheFirstRank) {
  const std::vector<float> whole = exchanged_values();
  const std::vector<PackedRanges> homes = scattered_homes();
  on_sharing_ranks(3, [&](Communicator& communicator) {
    const PackedRanges& home = homes[static_cast<std::size_t>(communicator.rank())];
    std::vector<float> collected(communicator.rank() == 0 ? whole.size() : 0);
    const runtime::Status status =
        collect_homes(communicator, homes, packed_values(home, whole), collected);
    ASSERT_TRUE(status.ok()) << status.to_string();
    if (communicator.rank() == 0) {
      EXPECT_TRUE(collected == whole);
    }
  });
}

TEST(HomeExchange, ARankThatIsGoneIsAnErrorOfTheOthers) {
  const std::vector<float> whole = exchanged_values();
  const std::vector<PackedRanges> homes = scattered_homes();
  on_sharing_ranks(3, [&](Communicator& communicator) {
    if (communicator.rank() == 2) return;
    kernel::ThreadPool pool(1);
    const PackedRanges& home = homes[static_cast<std::size_t>(communicator.rank())];
    EXPECT_FALSE(norm_of_homes(communicator, pool, homes, packed_values(home, whole)).ok());
  });
}

}  // namespace
}  // namespace rl
