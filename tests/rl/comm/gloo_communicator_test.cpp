#include "rl/comm/gloo_communicator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>

namespace rl {
namespace {

// Every rank is a thread of this process; the sockets between them are real.
void on_ranks(int size, const std::function<void(Communicator&)>& body,
              std::size_t bucket_elements = 1 << 22) {
  const std::shared_ptr<Rendezvous> rendezvous = make_local_rendezvous();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto group = make_gloo_communicator(rendezvous, {.rank = rank,
                                                       .size = size,
                                                       .group = "test",
                                                       .host = "127.0.0.1",
                                                       .deadline = std::chrono::seconds(20),
                                                       .bucket_elements = bucket_elements});
      ASSERT_TRUE(group.ok()) << group.status().to_string();
      body(**group);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(GlooCommunicator, SumsTheSameBitsOnAllRanks) {
  constexpr int kSize = 3;
  std::vector<std::vector<float>> results(kSize);
  on_ranks(
      kSize,
      [&](Communicator& group) {
        std::vector<float> values(1000);
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = 0.1F * static_cast<float>(i) + static_cast<float>(group.rank());
        ASSERT_TRUE(group.all_reduce_sum(values).ok());
        results[static_cast<std::size_t>(group.rank())] = values;
      },
      /*bucket_elements=*/300);
  for (std::size_t i = 0; i < 1000; ++i)
    ASSERT_NEAR(results[0][i], 0.3F * static_cast<float>(i) + 3.0F, 1e-3F);
  EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), 4000), 0);
  EXPECT_EQ(std::memcmp(results[0].data(), results[2].data(), 4000), 0);
}

TEST(GlooCommunicator, BroadcastsGathersAndMeets) {
  on_ranks(2, [](Communicator& group) {
    std::vector<float> values{static_cast<float>(group.rank()), 5.0F};
    ASSERT_TRUE(group.broadcast(values, 1).ok());
    EXPECT_EQ(values[0], 1.0F);
    const auto gathered =
        group.all_gather(static_cast<std::uint64_t>(group.rank()) + (std::uint64_t{1} << 63));
    ASSERT_TRUE(gathered.ok()) << gathered.status().to_string();
    EXPECT_EQ(*gathered,
              (std::vector<std::uint64_t>{std::uint64_t{1} << 63, (std::uint64_t{1} << 63) + 1}));
    std::vector<double> sums{0.5};
    ASSERT_TRUE(group.all_reduce_sum(sums).ok());
    EXPECT_EQ(sums[0], 1.0);
    EXPECT_TRUE(group.barrier().ok());
  });
}

TEST(GlooCommunicator, SaysWhenAPeerNeverComes) {
  const auto group = make_gloo_communicator(
      make_local_rendezvous(),
      {.rank = 0, .size = 2, .host = "127.0.0.1", .deadline = std::chrono::milliseconds(300)});
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), runtime::ErrorCode::kDeadlineExceeded)
      << group.status().to_string();
}

TEST(GlooCommunicator, SaysWhenAPeerIsGone) {
  on_ranks(2, [](Communicator& group) {
    if (group.rank() == 1) return;  // leaves the group
    std::vector<float> values(10);
    EXPECT_FALSE(group.all_reduce_sum(values).ok());
  });
}

TEST(GlooCommunicator, RefusesARankOutsideTheGroup) {
  EXPECT_EQ(
      make_gloo_communicator(make_local_rendezvous(), {.rank = 2, .size = 2, .host = "127.0.0.1"})
          .status()
          .code(),
      runtime::ErrorCode::kInvalidArgument);
}

TEST(SingleCommunicator, IsTheIdentity) {
  const auto group = make_single_communicator();
  std::vector<float> values{2.0F};
  EXPECT_TRUE(group->all_reduce_sum(values).ok());
  EXPECT_EQ(values[0], 2.0F);
  EXPECT_EQ(*group->all_gather(7), std::vector<std::uint64_t>{7});
}

}  // namespace
}  // namespace rl
