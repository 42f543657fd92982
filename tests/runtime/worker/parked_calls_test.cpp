// Calls that wait outside of the lanes: for callers that do not read, and behind calls whose
// arguments come.
#include "runtime/worker/parked_calls.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/worker/actor_lanes.h"
#include "tests/runtime/transport/channel_pair.h"

namespace runtime {
namespace {

class ParkedCallsTest : public ::testing::Test {
 protected:
  using Order = std::vector<std::uint64_t>;

  bool park(const ChannelPair& caller, const Lane& lane, std::uint64_t sequence) {
    auto job = std::make_unique<ActorJob>();
    job->channel = caller.near;
    job->call.sequence = sequence;
    return parked_.park(std::move(job), &lane);
  }
  bool has(const ChannelPair& caller, const Lane& lane) const {
    return parked_.has(caller.near.get(), &lane);
  }
  void hold(const ChannelPair& caller, const Lane& lane) { parked_.hold(caller.near.get(), &lane); }
  Order release(const ChannelPair& caller, const Lane* lane) {
    const auto line = parked_.release(caller.near.get(), lane);
    EXPECT_TRUE(line) << "nothing was held";
    Order order;
    while (auto job = line ? line->pop() : nullptr) order.push_back(job->call.sequence);
    return order;
  }

  EventLoop loop_;
  ChannelPair caller_{loop_}, other_{loop_};
  Lane lane_, another_lane_;
  ParkedCalls parked_;
};

TEST_F(ParkedCallsTest, ACallersCallsWaitTogetherInTheirOrder) {
  EXPECT_FALSE(has(caller_, lane_));
  EXPECT_TRUE(park(caller_, lane_, 1)) << "the first of its connection";
  EXPECT_TRUE(has(caller_, another_lane_)) << "those in other lanes wait, too";
  EXPECT_FALSE(has(other_, lane_));
  EXPECT_FALSE(park(caller_, another_lane_, 2));
  EXPECT_FALSE(park(caller_, lane_, 3));
  EXPECT_TRUE(park(other_, lane_, 4));
  EXPECT_EQ(parked_.size(), 4u);
  EXPECT_EQ(release(caller_, nullptr), (Order{1, 2, 3}));
  EXPECT_FALSE(has(caller_, lane_));
  EXPECT_TRUE(has(other_, lane_));
  EXPECT_EQ(parked_.release(caller_.near.get(), nullptr), nullptr) << "once";
}

TEST_F(ParkedCallsTest, ACallThatWaitsHoldsUpThoseOfItsLane) {
  hold(caller_, lane_);
  EXPECT_FALSE(parked_.empty());
  EXPECT_EQ(parked_.size(), 0u);
  EXPECT_TRUE(has(caller_, lane_)) << "the next one has to wait here";
  EXPECT_FALSE(has(caller_, another_lane_));
  EXPECT_FALSE(has(other_, lane_));
  EXPECT_FALSE(park(caller_, lane_, 1)) << "nothing new began";
  EXPECT_EQ(parked_.release(caller_.near.get(), nullptr), nullptr) << "that was not held";
  EXPECT_EQ(release(caller_, &lane_), Order{1});
  EXPECT_TRUE(parked_.empty());
}

TEST_F(ParkedCallsTest, TheLaneComesBeforeTheConnection) {
  EXPECT_TRUE(park(caller_, another_lane_, 1));  // from now on all of the connection wait
  hold(caller_, lane_);
  EXPECT_FALSE(park(caller_, lane_, 2));
  EXPECT_FALSE(park(caller_, another_lane_, 3));
  EXPECT_EQ(release(caller_, &lane_), Order{2}) << "those that are to go first into the lane";
  EXPECT_TRUE(has(caller_, lane_)) << "and may have to wait in the other line again";
  EXPECT_FALSE(park(caller_, lane_, 2));
  EXPECT_EQ(release(caller_, nullptr), (Order{1, 3, 2}));
}

TEST_F(ParkedCallsTest, ACallIsTakenOutOfWhicheverLineItIsIn) {
  hold(caller_, lane_);
  park(caller_, lane_, 1);
  park(caller_, another_lane_, 2);
  park(other_, lane_, 1);
  const auto take = [&](const ChannelPair& caller, std::uint64_t sequence) {
    const auto job = parked_.take(caller.near.get(), sequence);
    return job ? job->call.sequence : 0;
  };
  EXPECT_EQ(take(other_, 2), 0u) << "another caller's";
  EXPECT_EQ(take(caller_, 2), 2u);
  EXPECT_EQ(take(caller_, 2), 0u);
  EXPECT_EQ(take(caller_, 1), 1u);
  EXPECT_TRUE(has(caller_, lane_)) << "those that come still have to wait";
  EXPECT_EQ(release(other_, nullptr), Order{1});
}

TEST_F(ParkedCallsTest, AllAreTaken) {
  hold(caller_, lane_);
  park(caller_, lane_, 1);
  park(other_, lane_, 2);
  hold(other_, another_lane_);
  std::size_t taken = 0;
  while (parked_.take_any()) ++taken;
  EXPECT_EQ(taken, 2u);
  EXPECT_TRUE(parked_.empty()) << "nothing is held any more";
}

}  // namespace
}  // namespace runtime
