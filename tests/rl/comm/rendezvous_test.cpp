#include "rl/comm/rendezvous.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/blocking_thread.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::chrono::milliseconds kPatient{60'000};

TEST(LocalRendezvous, ARankWaitsForAKeyThatAnotherPuts) {
  const auto place = make_local_rendezvous();
  support::BlockingThread waiting;
  std::thread other([&] {
    EXPECT_TRUE(waiting.is_blocked());
    EXPECT_TRUE(place->put("another", Bytes{9}).ok());
    EXPECT_TRUE(waiting.is_blocked()) << "its key is not there yet";
    EXPECT_TRUE(place->put("address", Bytes{1, 2}).ok());
  });
  waiting.begin();
  const auto value = place->get("address", kPatient);
  other.join();
  ASSERT_TRUE(value.ok()) << value.status().to_string();
  EXPECT_EQ(*value, (Bytes{1, 2}));
}

TEST(LocalRendezvous, AKeyThatNoRankPutsIsNamed) {
  const auto place = make_local_rendezvous();
  support::expect_failure(place->get("address", std::chrono::milliseconds(0)).status(),
                          runtime::ErrorCode::kDeadlineExceeded, {"'address'"});
}

TEST(LocalRendezvous, AValueThatIsPutAgainReplacesTheOneBefore) {
  const auto place = make_local_rendezvous();
  EXPECT_TRUE(place->put("a", Bytes{1, 2, 3}).ok());
  EXPECT_TRUE(place->put("a", Bytes{}).ok());
  EXPECT_EQ(*place->get("a", kPatient), Bytes());
}

// Ranks count themselves: each sum is one rank's.
TEST(LocalRendezvous, ACounterGivesEachRankItsOwnSum) {
  const auto place = make_local_rendezvous();
  constexpr std::int64_t kRanks = 8;
  std::vector<std::int64_t> sums(kRanks, 0);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] { sums[rank] = *place->add("ranks", 1); });
  for (std::thread& thread : threads) thread.join();
  std::vector<bool> seen(kRanks, false);
  for (const std::int64_t sum : sums) seen.at(static_cast<std::size_t>(sum - 1)) = true;
  EXPECT_EQ(seen, std::vector<bool>(kRanks, true));
  EXPECT_EQ(*place->add("others", 5), 5) << "each key has its own";
}

}  // namespace
}  // namespace rl
