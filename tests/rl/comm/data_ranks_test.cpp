#include "rl/comm/data_ranks.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "rl/comm/gloo_communicator.h"

namespace rl {
namespace {

TEST(DataRanks, OfOneAreTheIdentity) {
  const auto communicator = make_single_communicator();
  CommunicatorRanks ranks(*communicator);
  EXPECT_EQ(ranks.share(), 1.0);
  std::vector<double> values{1.5, -2.0};
  ASSERT_TRUE(ranks.sum(values).ok());
  EXPECT_EQ(values, (std::vector<double>{1.5, -2.0}));
  EXPECT_EQ(*ranks.gather(std::vector<float>{3.0F, 4.0F}), (std::vector<float>{3.0F, 4.0F}));
}

TEST(DataRanks, SumAndGatherInRankOrder) {
  const std::shared_ptr<Rendezvous> rendezvous = make_local_rendezvous();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      auto group =
          make_gloo_communicator(rendezvous, {.rank = rank, .size = 3, .host = "127.0.0.1"});
      ASSERT_TRUE(group.ok()) << group.status().to_string();
      CommunicatorRanks ranks(**group);
      EXPECT_EQ(ranks.share(), 1.0 / 3);
      std::vector<double> values{1.0 + rank};
      ASSERT_TRUE(ranks.sum(values).ok());
      EXPECT_EQ(values.front(), 6.0);
      const auto mine = static_cast<float>(rank);
      EXPECT_EQ(*ranks.gather(std::vector<float>{mine, -mine}),
                (std::vector<float>{0.0F, 0.0F, 1.0F, -1.0F, 2.0F, -2.0F}));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rl
