#include "rl/comm/peer_messages.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rl/comm/thread_links.h"
#include "tests/rl/comm/memory_links.h"
#include "tests/support/eventually.h"

namespace rl {
namespace {

using runtime::Status;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

Status send(PeerMessages& messages, int peer, const std::string& text, std::uint64_t channel = 0) {
  const auto bytes = std::make_shared<const std::vector<std::byte>>(bytes_of(text));
  return messages.send(peer, channel, *bytes, bytes, "text");
}

std::string received(PeerMessages& messages, int peer, std::uint64_t channel = 0) {
  const auto bytes = messages.receive(peer, channel, "text");
  EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
  if (!bytes.ok()) return {};
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

enum class Way { kThreads, kRings, kReads };

class PeerMessagesTest : public ::testing::TestWithParam<Way> {
 protected:
  std::vector<std::unique_ptr<PeerMessages>> ranks(int size) {
    auto links = GetParam() == Way::kThreads
                     ? make_thread_links(size)
                     : memory_links(size, {.deadline = std::chrono::minutes(1),
                                           .reads_peers = GetParam() == Way::kReads});
    std::vector<std::unique_ptr<PeerMessages>> all;
    for (std::unique_ptr<Links>& own : links)
      all.push_back(std::make_unique<PeerMessages>(std::move(own)));
    return all;
  }
};

TEST_P(PeerMessagesTest, ArriveInTheirOrderWhateverElseTheRanksDo) {
  auto all = ranks(3);
  std::thread first([&] {
    ASSERT_TRUE(send(*all[0], 1, "a").ok());
    ASSERT_TRUE(send(*all[0], 1, "").ok());
    ASSERT_TRUE(send(*all[0], 2, std::string(3 << 20, 'x')).ok());
    ASSERT_TRUE(send(*all[0], 1, "bcd").ok());
    EXPECT_EQ(received(*all[0], 1), "back");
    EXPECT_TRUE(all[0]->flush().ok());
  });
  std::thread second([&] {
    EXPECT_EQ(received(*all[1], 0), "a");
    ASSERT_TRUE(send(*all[1], 0, "back").ok());
    EXPECT_EQ(received(*all[1], 0), "");
    EXPECT_EQ(received(*all[1], 0), "bcd");
    EXPECT_TRUE(all[1]->flush().ok());
  });
  EXPECT_EQ(received(*all[2], 0), std::string(3 << 20, 'x'));
  first.join();
  second.join();
}

// Two ranks that send more than fits, and wait for another channel than comes first.
TEST_P(PeerMessagesTest, ChannelsAreReceivedInAnyOrder) {
  auto all = ranks(2);
  const std::string large(3 << 20, 'x');
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      PeerMessages& own = *all[static_cast<std::size_t>(rank)];
      for (const std::uint64_t channel : {1, 1, 2, 3})
        ASSERT_TRUE(send(own, 1 - rank, large + std::to_string(channel), channel).ok());
      for (const std::uint64_t channel : {3, 2, 1, 1})
        EXPECT_TRUE(received(own, 1 - rank, channel) == large + std::to_string(channel));
      EXPECT_TRUE(own.flush().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(PeerMessagesTest, ARankThatIsAheadWaitsForTheOthers) {
  auto all = ranks(2);
  constexpr int kCount = 5 * static_cast<int>(PeerMessages::kUnderWay);
  std::thread sender([&] {
    for (int i = 0; i < kCount; ++i)
      ASSERT_TRUE(send(*all[0], 1, std::string(100'000, 'a') + std::to_string(i)).ok());
    EXPECT_TRUE(all[0]->flush().ok());
  });
  for (int i = 0; i < kCount; ++i)
    EXPECT_EQ(received(*all[1], 0), std::string(100'000, 'a') + std::to_string(i));
  sender.join();
}

TEST_P(PeerMessagesTest, ARankThatLeavesIsNamedWithWhatWasWaitedFor) {
  auto all = ranks(2);
  all[1].reset();
  const auto message = all[0]->receive(1, 0, "activations of a stage");
  EXPECT_EQ(message.status().code(), runtime::ErrorCode::kUnavailable);
  const std::string text(message.status().message());
  EXPECT_NE(text.find("activations of a stage from rank 1 to rank 0 of 2"), std::string::npos)
      << text;
}

TEST_P(PeerMessagesTest, AnAbortEndsAWaitWithItsReason) {
  auto all = ranks(2);
  std::thread waiting([&] {
    const auto message = all[0]->receive(1, 0, "rows");
    EXPECT_EQ(message.status().code(), runtime::ErrorCode::kCancelled);
  });
  EXPECT_TRUE(support::eventually([&] { return all[0]->pulse().waiting; }));
  all[0]->abort(runtime::Status(runtime::ErrorCode::kCancelled, "the run ends"));
  waiting.join();
}

INSTANTIATE_TEST_SUITE_P(Links, PeerMessagesTest,
                         ::testing::Values(Way::kThreads, Way::kRings, Way::kReads),
                         [](const auto& of) {
                           return of.param == Way::kThreads ? "Threads"
                                  : of.param == Way::kRings ? "Rings"
                                                            : "Reads";
                         });

}  // namespace
}  // namespace rl
