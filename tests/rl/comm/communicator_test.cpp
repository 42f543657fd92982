#include "rl/comm/communicator.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "rl/comm/gloo_communicator.h"
#include "rl/comm/thread_links.h"
#include "tests/support/eventually.h"

namespace rl {
namespace {

enum class Backend { kThreads, kGloo, kSharedMemory };

// Every rank is a thread of this process; the sockets between Gloo's are real.
void on_ranks(Backend backend, int size, const std::function<void(Communicator&)>& body,
              const Communicator::Options& options = {}) {
  const std::shared_ptr<Rendezvous> rendezvous = make_local_rendezvous();
  std::vector<std::unique_ptr<Links>> ends = make_thread_links(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      if (backend == Backend::kThreads) {
        Communicator group(std::move(ends[static_cast<std::size_t>(rank)]), options);
        body(group);
        return;
      }
      auto group =
          make_gloo_communicator(rendezvous, {.rank = rank,
                                              .size = size,
                                              .group = "test",
                                              .host = "127.0.0.1",
                                              .deadline = std::chrono::seconds(60),
                                              .exchange_deadline = std::chrono::seconds(60),
                                              .shares_memory = backend != Backend::kGloo,
                                              .collectives = options});
      ASSERT_TRUE(group.ok()) << group.status().to_string();
      body(**group);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class CommunicatorTest : public ::testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(Backends, CommunicatorTest,
                         ::testing::Values(Backend::kThreads, Backend::kGloo,
                                           Backend::kSharedMemory),
                         [](const auto& backend) {
                           return backend.param == Backend::kThreads ? "Threads"
                                  : backend.param == Backend::kGloo  ? "Gloo"
                                                                     : "SharedMemory";
                         });

// Values whose sum depends on the order of its terms.
std::vector<float> values_of(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::normal_distribution<float> normal(0.0F, 1e3F);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST_P(CommunicatorTest, SumsInTheOrderOfRanksWhateverTheBuckets) {
  for (const int size : {1, 2, 3, 4}) {
    for (const std::size_t count : {0, 1, 3, 1000}) {
      std::vector<float> expected = values_of(0, count);
      for (int rank = 1; rank < size; ++rank) {
        const std::vector<float> term = values_of(rank, count);
        for (std::size_t i = 0; i < count; ++i) expected[i] += term[i];
      }
      on_ranks(GetParam(), size,
               [&](Communicator& group) {
                 std::vector<float> values = values_of(group.rank(), count);
                 const runtime::Status summed = group.all_reduce_sum(values, "gradients");
                 ASSERT_TRUE(summed.ok()) << summed.to_string();
                 EXPECT_EQ(std::memcmp(values.data(), expected.data(), count * sizeof(float)), 0)
                     << size << " ranks, " << count << " values, rank " << group.rank();
               },
               {.bucket_bytes = 400});
    }
  }
}

// Seven leaves, dealt in turns; the third and the last have nothing.
TEST_P(CommunicatorTest, SumsOverRoundsHaveTheSameBitsOnAnyNumberOfRanks) {
  constexpr int kLeaves = 7;
  const auto has_something = [](int leaf) { return leaf != 2 && leaf < kLeaves - 1; };
  for (const std::size_t count : {1, 1000}) {
    std::vector<float> expected = values_of(0, count);
    for (int leaf = 1; leaf < kLeaves; ++leaf) {
      if (!has_something(leaf)) continue;
      const std::vector<float> term = values_of(leaf, count);
      for (std::size_t i = 0; i < count; ++i) expected[i] += term[i];
    }
    for (const int size : {1, 2, 3, 4, 7}) {
      on_ranks(GetParam(), size,
               [&](Communicator& group) {
                 SumRounds<float> rounds;
                 std::vector<float> values;
                 for (int first = 0; first < kLeaves; first += size) {
                   const int mine = first + group.rank();
                   std::vector<std::uint8_t> adds;
                   for (int rank = 0; rank < size; ++rank)
                     adds.push_back(has_something(first + rank) ? 1 : 0);
                   values = has_something(mine) ? values_of(mine, count)
                                                : std::vector<float>(count, 0.0F);
                   const std::vector<float> before = values;
                   const bool last = first + size >= kLeaves;
                   const runtime::Status summed = group.reduce_round(values, rounds, adds, last);
                   ASSERT_TRUE(summed.ok()) << summed.to_string();
                   if (!last) {
                     EXPECT_EQ(values, before);
                   }
                 }
                 EXPECT_EQ(std::memcmp(values.data(), expected.data(), count * sizeof(float)), 0)
                     << size << " ranks, " << count << " values, rank " << group.rank();
                 EXPECT_TRUE(rounds.carry.empty() && !rounds.begun);
               },
               {.bucket_bytes = 400});
    }
  }
}

TEST_P(CommunicatorTest, ARoundOfNothingIsZero) {
  on_ranks(GetParam(), 2, [](Communicator& group) {
    SumRounds<float> rounds;
    std::vector<float> values{-0.0F, 5.0F, 7.0F};
    const std::vector<std::uint8_t> no_rank{0, 0};
    ASSERT_TRUE(group.reduce_round(values, rounds, no_rank, true).ok());
    EXPECT_EQ(values, (std::vector<float>{0, 0, 0}));
  });
}

TEST_P(CommunicatorTest, GathersInTheOrderOfRanks) {
  on_ranks(GetParam(), 3, [](Communicator& group) {
    const auto gathered =
        group.all_gather(static_cast<std::uint64_t>(group.rank()) + (std::uint64_t{1} << 63));
    ASSERT_TRUE(gathered.ok()) << gathered.status().to_string();
    const std::uint64_t high = std::uint64_t{1} << 63;
    EXPECT_EQ(*gathered, (std::vector<std::uint64_t>{high, high + 1, high + 2}));
    EXPECT_TRUE(group.barrier().ok());
  });
}

TEST_P(CommunicatorTest, GathersPartsOfDifferentSizesAndNone) {
  on_ranks(GetParam(), 3, [](Communicator& group) {
    // Rank r has r * 5 bytes of value r.
    const auto bytes_of = [](int rank) {
      return std::vector<std::byte>(static_cast<std::size_t>(rank) * 5, std::byte(rank));
    };
    std::vector<std::vector<std::byte>> all;
    std::vector<std::span<std::byte>> rooms;
    for (int rank = 0; rank < 3; ++rank) all.emplace_back(static_cast<std::size_t>(rank) * 5);
    for (auto& one : all) rooms.emplace_back(one);
    const runtime::Status done = group.all_gather(bytes_of(group.rank()), rooms, "parts");
    ASSERT_TRUE(done.ok()) << done.to_string();
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == group.rank()) continue;
      EXPECT_EQ(all[static_cast<std::size_t>(rank)], bytes_of(rank));
    }
  });
}

TEST_P(CommunicatorTest, ExchangesWhatEachPairHasAgreedOn) {
  on_ranks(GetParam(), 3, [](Communicator& group) {
    // Two parts for each peer, in order: the sender's number, and sender and receiver.
    std::vector<std::array<int, 3>> sent(3), received(3);
    std::vector<Outgoing> outgoing;
    std::vector<Incoming> incoming;
    for (int peer = 0; peer < 3; ++peer) {
      auto& mine = sent[static_cast<std::size_t>(peer)];
      auto& theirs = received[static_cast<std::size_t>(peer)];
      mine = {group.rank(), group.rank(), peer};
      outgoing.push_back({peer, std::as_bytes(std::span(mine).first(1))});
      outgoing.push_back({peer, std::as_bytes(std::span(mine).last(2))});
      incoming.push_back({peer, std::as_writable_bytes(std::span(theirs).first(1))});
      incoming.push_back({peer, std::as_writable_bytes(std::span(theirs).last(2))});
    }
    const runtime::Status done = group.all_to_all(outgoing, incoming, "pairs");
    ASSERT_TRUE(done.ok()) << done.to_string();
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == group.rank()) continue;
      EXPECT_EQ(received[static_cast<std::size_t>(peer)],
                (std::array<int, 3>{peer, peer, group.rank()}));
    }
  });
}

// A rank without a part in a transfer is at the same operation as the others behind it.
TEST_P(CommunicatorTest, ATransferCountsWhereARankMovesNothing) {
  on_ranks(GetParam(), 3, [](Communicator& group) {
    float sent = 7, there = 0;
    std::vector<Outgoing> outgoing;
    std::vector<Incoming> incoming;
    if (group.rank() == 0) outgoing.push_back({1, std::as_bytes(std::span(&sent, 1))});
    if (group.rank() == 1) incoming.push_back({0, std::as_writable_bytes(std::span(&there, 1))});
    Transfer transfer = group.begin_exchange(outgoing, incoming, "a part");
    ASSERT_TRUE(group.finish(transfer).ok());
    EXPECT_EQ(there, group.rank() == 1 ? 7 : 0);
    EXPECT_TRUE(group.finish(transfer).ok());  // without effect, on all
    EXPECT_EQ(group.pulse().operations, 2u);
    const auto ranks = group.all_gather(static_cast<std::uint64_t>(group.rank()));
    ASSERT_TRUE(ranks.ok()) << ranks.status().to_string();
    EXPECT_EQ(*ranks, (std::vector<std::uint64_t>{0, 1, 2}));
  });
}

TEST_P(CommunicatorTest, NamesTheOperationAndTheRankThatIsGone) {
  on_ranks(GetParam(), 2, [](Communicator& group) {
    if (group.rank() == 1) return;  // leaves the group
    std::vector<float> values(10);
    const runtime::Status failed = group.all_reduce_sum(values, "gradients of layer 3");
    EXPECT_EQ(failed.code(), runtime::ErrorCode::kUnavailable) << failed.to_string();
    for (const char* part :
         {"all-reduce of gradients of layer 3", "operation 1", "rank 0 of 2", "rank 1"})
      EXPECT_NE(failed.message().find(part), std::string::npos) << failed.message();
    // The group stays broken.
    EXPECT_FALSE(group.barrier().ok());
  });
}

// Rank 2 never comes to the collective; who watches the ranks aborts it on all that wait.
TEST_P(CommunicatorTest, AbortEndsAnOperationFromAnotherThread) {
  std::atomic<int> ended = 0;
  on_ranks(GetParam(), 3, [&](Communicator& group) {
    if (group.rank() == 2) {
      EXPECT_TRUE(support::eventually([&] { return ended == 2; }));
      return;
    }
    std::thread watch([&group] {
      EXPECT_TRUE(support::eventually([&] { return group.pulse().operations > 0; }));
      group.abort(runtime::cancelled("rank 2 makes no progress"));
    });
    std::vector<float> values(100);
    const runtime::Status failed = group.all_reduce_sum(values, "gradients");
    ++ended;
    watch.join();
    EXPECT_FALSE(failed.ok());
    EXPECT_FALSE(group.barrier().ok());  // the group stays broken
  });
}

// The reason given to abort() is what the rank that was aborted is told.
TEST_P(CommunicatorTest, AbortGivesItsReason) {
  std::atomic<bool> ended = false;
  on_ranks(GetParam(), 2, [&](Communicator& group) {
    if (group.rank() == 1) {
      EXPECT_TRUE(support::eventually([&] { return ended.load(); }));
      return;
    }
    std::thread watch([&group] {
      EXPECT_TRUE(support::eventually([&] { return group.pulse().operations > 0; }));
      group.abort(runtime::cancelled("rank 1 makes no progress"));
    });
    const runtime::Status failed = group.barrier("the start");
    ended = true;
    watch.join();
    EXPECT_EQ(failed.code(), runtime::ErrorCode::kCancelled) << failed.to_string();
    for (const char* part : {"barrier of the start", "rank 0 of 2", "rank 1 makes no progress"})
      EXPECT_NE(failed.message().find(part), std::string::npos) << failed.message();
  });
}

TEST(ThreadLinks, NoticesCallsThatDoNotMatch) {
  on_ranks(Backend::kThreads, 2, [](Communicator& group) {
    std::vector<float> values(group.rank() == 0 ? 10 : 20);
    const runtime::Status failed = group.all_reduce_sum(values);
    EXPECT_FALSE(failed.ok());
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
