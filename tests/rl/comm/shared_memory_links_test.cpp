#include "rl/comm/shared_memory_links.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/rl/comm/memory_links.h"
#include "tests/support/eventually.h"

namespace rl {
namespace {

constexpr std::size_t kSmallRing = 4096;

class SharedMemoryLinksTest : public ::testing::TestWithParam<bool> {
 protected:
  std::vector<std::unique_ptr<Links>> links(int ranks) {
    return memory_links(
        ranks,
        {.deadline = std::chrono::minutes(1), .ring_bytes = kSmallRing, .reads_peers = GetParam()});
  }
};

std::span<const std::byte> bytes_in(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::span<std::byte> room_in(std::string& text) { return std::as_writable_bytes(std::span(text)); }

TEST_P(SharedMemoryLinksTest, PartsOfAllSizesArriveInTheirOrder) {
  auto all = links(2);
  const std::vector<std::size_t> sizes = {1, 2047, 2048, 2049, 4096, 4097, 100'000, 3, 70'000};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Links& own = *all[static_cast<std::size_t>(rank)];
      std::vector<std::string> texts, received;
      for (const std::size_t size : sizes) {
        texts.emplace_back(size, static_cast<char>('a' + texts.size() + 13 * std::size_t(rank)));
        received.emplace_back(size, '-');
      }
      std::vector<Outgoing> sent;
      std::vector<Incoming> room;
      for (std::size_t part = 0; part < sizes.size(); ++part) {
        sent.push_back({1 - rank, bytes_in(texts[part])});
        room.push_back({1 - rank, room_in(received[part])});
      }
      for (std::uint64_t operation = 1; operation <= 3; ++operation) {
        const auto done = own.start(sent, room, operation)->wait();
        ASSERT_TRUE(done.ok()) << done.to_string();
        for (std::size_t part = 0; part < sizes.size(); ++part) {
          const char letter = static_cast<char>(texts[part][0] + (rank == 0 ? 13 : -13));
          EXPECT_TRUE(received[part] == std::string(sizes[part], letter)) << "part " << part;
          received[part].assign(sizes[part], '-');
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(SharedMemoryLinksTest, WhatWasWaitedForMayBeOverwritten) {
  auto all = links(2);
  std::string text(100'000, 'x'), received(text.size(), '-');
  std::thread sender([&] {
    const Outgoing part{1, bytes_in(text)};
    ASSERT_TRUE(all[0]->start(std::span(&part, 1), {}, 1)->wait().ok());
    text.assign(text.size(), 'y');
  });
  const Incoming part{0, room_in(received)};
  EXPECT_TRUE(all[1]->start({}, std::span(&part, 1), 1)->wait().ok());
  sender.join();
  EXPECT_TRUE(received == std::string(text.size(), 'x'));
}

// Its memory may have gone, or be used for something else.
TEST_P(SharedMemoryLinksTest, APartOfARankThatHasLeftIsAnError) {
  auto all = links(2);
  std::string text(100'000, 'x'), received(text.size(), '-');
  {
    const Outgoing part{1, bytes_in(text)};
    const auto begun = all[0]->start(std::span(&part, 1), {}, 1);
    all[0]->abort(runtime::Status(runtime::ErrorCode::kCancelled, "the run ends"));
    EXPECT_EQ(begun->wait().code(), runtime::ErrorCode::kCancelled);
  }
  const Incoming part{0, room_in(received)};
  const auto came = all[1]->start({}, std::span(&part, 1), 1)->wait();
  EXPECT_EQ(came.code(), runtime::ErrorCode::kUnavailable);
  EXPECT_NE(came.to_string().find("rank 0 has left the group"), std::string::npos)
      << came.to_string();
}

TEST_P(SharedMemoryLinksTest, ARankThatReadsNothingIsLate) {
  auto all = memory_links(2, {.deadline = std::chrono::milliseconds(100),
                              .ring_bytes = kSmallRing,
                              .reads_peers = GetParam()});
  const std::string text(100'000, 'x');
  const Outgoing part{1, bytes_in(text)};
  const auto sent = all[0]->start(std::span(&part, 1), {}, 1)->wait();
  EXPECT_EQ(sent.code(), runtime::ErrorCode::kDeadlineExceeded);
  EXPECT_NE(sent.to_string().find("rank 1 is late"), std::string::npos) << sent.to_string();
}

INSTANTIATE_TEST_SUITE_P(Ways, SharedMemoryLinksTest, ::testing::Values(false, true),
                         [](const auto& of) { return of.param ? "Reads" : "Rings"; });

}  // namespace
}  // namespace rl
