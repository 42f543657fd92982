// Results that refer to objects, held for their callers.
#include "runtime/worker/held_results.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "tests/runtime/transport/channel_pair.h"

namespace runtime {
namespace {

class HeldResultsTest : public ::testing::Test {
 protected:
  /// A value that says when it is dropped.
  ObjectValue value(std::function<void()> on_drop = [] {}) {
    ++held_;
    ObjectValue made;
    made.loan = std::shared_ptr<const void>(this, [this, on_drop](const void*) {
      --held_;
      on_drop();
    });
    return made;
  }
  bool hold(const ChannelPair& caller, std::uint64_t sequence) {
    return results_.hold(*caller.near, actor_, sequence, value());
  }
  void release(const ChannelPair& caller, std::uint64_t sequence) {
    results_.release(caller.near.get(), actor_, sequence);
  }

  EventLoop loop_;
  ChannelPair caller_{loop_}, other_{loop_};
  const ActorId actor_ = ActorId::random();
  int held_ = 0;
  HeldResults results_;
};

TEST_F(HeldResultsTest, AResultIsHeldUntilItsCallerLetsGo) {
  EXPECT_TRUE(hold(caller_, 1));
  EXPECT_TRUE(hold(caller_, 2));
  EXPECT_EQ(held_, 2);
  release(other_, 1);
  results_.release(caller_.near.get(), ActorId::random(), 1);
  release(caller_, 3);
  EXPECT_EQ(held_, 2) << "none of these is one that is held";
  release(caller_, 1);
  EXPECT_EQ(held_, 1);
  release(caller_, 1);
  EXPECT_EQ(held_, 1) << "once";
}

TEST_F(HeldResultsTest, NothingIsHeldForAConnectionThatHasEnded) {
  caller_.close();
  EXPECT_FALSE(hold(caller_, 1));
  EXPECT_EQ(held_, 0);
  EXPECT_TRUE(results_.release_all(caller_.near.get()).empty());
}

TEST_F(HeldResultsTest, AConnectionsEndReleasesWhatWasHeldForIt) {
  hold(caller_, 2);
  hold(other_, 1);
  hold(caller_, 1);
  results_.hold(*caller_.near, ActorId::random(), 7, value());
  {
    const std::vector<ObjectValue> released = results_.release_all(caller_.near.get());
    EXPECT_EQ(released.size(), 3u);
    EXPECT_EQ(held_, 4) << "the caller of this drops them";
  }
  EXPECT_EQ(held_, 1);
  EXPECT_TRUE(results_.release_all(caller_.near.get()).empty());
  EXPECT_EQ(results_.release_all(other_.near.get()).size(), 1u);
}

TEST_F(HeldResultsTest, WhatIsDroppedMayCallBack) {
  hold(caller_, 2);
  EXPECT_TRUE(results_.hold(*caller_.near, actor_, 1, value([this] { release(caller_, 2); })));
  release(caller_, 1);
  EXPECT_EQ(held_, 0);
}

}  // namespace
}  // namespace runtime
