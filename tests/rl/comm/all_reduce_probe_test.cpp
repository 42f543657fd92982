// Ranks as threads; as actors of several nodes they run in tests/placement/app/doctor_test.cpp.
#include "rl/comm/all_reduce_probe.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tests/rl/comm/started_runtime.h"

namespace rl {
namespace {

using Measured = runtime::Result<AllReduceResult>;

class AllReduceProbeTest : public StartedRuntimeTest {
 protected:
  std::vector<Measured> measure(int size, const std::string& group, std::uint64_t elements) {
    std::vector<Measured> results(static_cast<std::size_t>(size), AllReduceResult());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        AllReduceProbe probe(runtime_, rank, size, group);
        results[static_cast<std::size_t>(rank)] = probe.measure(elements, /*rounds=*/2);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }
};

TEST_F(AllReduceProbeTest, EachRankSeesTheSumOfAll) {
  for (const int size : {1, 3}) {
    for (const Measured& result : measure(size, "of " + std::to_string(size), 1001)) {
      ASSERT_TRUE(result.ok()) << result.status().to_string();
      EXPECT_TRUE(result->correct);
      EXPECT_GT(result->seconds, 0);
      EXPECT_LT(result->seconds, std::numeric_limits<double>::max()) << "a round was measured";
    }
  }
}

TEST_F(AllReduceProbeTest, ARankOutsideTheGroupIsRefused) {
  AllReduceProbe probe(runtime_, /*rank=*/2, /*size=*/2, "group");
  EXPECT_EQ(probe.measure(1, 1).status().code(), runtime::ErrorCode::kInvalidArgument);
}

TEST(AllReduceProbe, WithoutAClusterItFails) {
  char name[] = "test";
  char* arguments[] = {name, nullptr};
  runtime::Runtime runtime(1, arguments);  // it is not started
  AllReduceProbe probe(runtime, 0, 1, "group");
  EXPECT_EQ(probe.measure(1, 1).status().code(), runtime::ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace rl
