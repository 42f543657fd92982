#include "rl/comm/runtime_rendezvous.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/rl/comm/started_runtime.h"
#include "tests/support/blocking_thread.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using namespace std::chrono_literals;
using runtime::ErrorCode;

class RuntimeRendezvousTest : public StartedRuntimeTest {
 protected:
  const std::vector<std::uint8_t> value_ = {0, 255, 10, 0};
};

TEST_F(RuntimeRendezvousTest, ValuesAndCountersAreTheClustersWhicheverRankAsks) {
  const auto one = make_runtime_rendezvous(runtime_), other = make_runtime_rendezvous(runtime_);
  ASSERT_TRUE(one->put("key", value_).ok());
  for (const auto wait : {0ms, 60'000ms}) {
    const auto found = other->get("key", wait);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_EQ(*found, value_);
  }
  EXPECT_EQ(one->add("ranks", 2).value_or(-1), 2);
  EXPECT_EQ(other->add("ranks", 3).value_or(-1), 5);
}

TEST_F(RuntimeRendezvousTest, AKeyIsWaitedForOrMissing) {
  const auto place = make_runtime_rendezvous(runtime_);
  support::expect_failure(place->get("key", 0ms).status(), ErrorCode::kDeadlineExceeded, {"'key'"});
  EXPECT_EQ(place->get("key", 1ms).status().code(), ErrorCode::kDeadlineExceeded);
  support::BlockingThread waiting;
  std::thread other([&] {
    EXPECT_TRUE(waiting.is_blocked());
    EXPECT_TRUE(place->put("key", value_).ok());
  });
  waiting.begin();
  const auto found = place->get("key", 60'000ms);
  other.join();
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(*found, value_);
}

TEST_F(RuntimeRendezvousTest, ANodesHostHasNoPort) {
  const auto state = runtime_.cluster().state();
  ASSERT_TRUE(state.ok()) << state.status().to_string();
  ASSERT_EQ(state->nodes.size(), 1U);
  const auto host = node_host(runtime_);
  ASSERT_TRUE(host.ok()) << host.status().to_string();
  const std::string& address = state->nodes[0].address;
  EXPECT_EQ(*host, address.substr(0, address.rfind(':')));
  EXPECT_FALSE(host->empty());
}

TEST(RuntimeRendezvous, TheHostOfAnAddressHasNeitherPortNorBrackets) {
  EXPECT_EQ(host_of_node("10.0.0.2:7000").value_or(""), "10.0.0.2");
  EXPECT_EQ(host_of_node("node-1.example:7000").value_or(""), "node-1.example");
  EXPECT_EQ(host_of_node("[::1]:7000").value_or(""), "::1");
  EXPECT_EQ(host_of_node("[fe80::1%eth0]:7000").value_or(""), "fe80::1%eth0");
  support::expect_failure(host_of_node("::1:7000").status(), ErrorCode::kInvalidArgument,
                          {"'::1:7000'", "[ADDRESS]:PORT"});
}

TEST(RuntimeRendezvous, WithoutAClusterEachCallFails) {
  char name[] = "test";
  char* arguments[] = {name, nullptr};
  runtime::Runtime runtime(1, arguments);  // it is not started
  const auto place = make_runtime_rendezvous(runtime);
  EXPECT_EQ(place->put("key", {}).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(place->get("key", 0ms).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(place->add("key", 1).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(node_host(runtime).status().code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace rl
