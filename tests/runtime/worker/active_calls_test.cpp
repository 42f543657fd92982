// The cancellation of calls that run.
#include "runtime/worker/active_calls.h"

#include <gtest/gtest.h>

#include <memory>
#include <stop_token>
#include <utility>

#include "tests/runtime/transport/channel_pair.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class ActiveCallsTest : public ::testing::Test {
 protected:
  CallContext begin(const ChannelPair& caller, std::uint64_t sequence) {
    return begin(caller, actor_, sequence);
  }
  CallContext begin(const ChannelPair& caller, ActorId actor, std::uint64_t sequence) {
    return calls_.begin(caller.near.get(), actor, sequence, deadline_);
  }
  void end(std::uint64_t sequence) { calls_.end(caller_.near.get(), actor_, sequence); }
  std::shared_ptr<StreamSender> stream(std::uint64_t sequence) {
    return calls_.stream(caller_.near.get(), actor_, sequence);
  }

  EventLoop loop_;
  ChannelPair caller_{loop_}, other_{loop_};
  const ActorId actor_ = ActorId::random(), another_ = ActorId::random();
  const Deadline deadline_ = deadline_after(1h);
  ActiveCalls calls_;
};

TEST_F(ActiveCallsTest, OneCallIsCancelledAndNoOther) {
  const CallContext first = begin(caller_, 1), second = begin(caller_, 2);
  const CallContext others = begin(other_, 1), another = begin(caller_, another_, 1);
  EXPECT_EQ(first.deadline(), deadline_);
  EXPECT_FALSE(first.cancelled());
  calls_.cancel(caller_.near.get(), actor_, 3);
  EXPECT_FALSE(first.cancelled());
  calls_.cancel(caller_.near.get(), actor_, 2);
  EXPECT_TRUE(second.cancelled());
  for (const CallContext* call : {&first, &others, &another}) EXPECT_FALSE(call->cancelled());
  calls_.cancel(other_.near.get(), actor_, 1);
  EXPECT_TRUE(others.cancelled());
  EXPECT_FALSE(first.cancelled());
}

TEST_F(ActiveCallsTest, ACallersCallsAreCancelledWithIt) {
  const CallContext first = begin(caller_, 1), second = begin(caller_, another_, 0);
  const CallContext others = begin(other_, 1);
  calls_.cancel_all(caller_.near.get());
  EXPECT_TRUE(first.cancelled());
  EXPECT_TRUE(second.cancelled()) << "also those of other actors";
  EXPECT_FALSE(others.cancelled());
}

TEST_F(ActiveCallsTest, AnActorsCallsOfAllCallersAreCancelled) {
  const CallContext first = begin(caller_, 1), others = begin(other_, 2);
  const CallContext another = begin(caller_, another_, 1);
  calls_.cancel_all(actor_);
  EXPECT_TRUE(first.cancelled());
  EXPECT_TRUE(others.cancelled());
  EXPECT_FALSE(another.cancelled());
  calls_.cancel_all();
  EXPECT_TRUE(another.cancelled());
}

TEST_F(ActiveCallsTest, ACallThatHasEndedIsNotCancelled) {
  const CallContext before = begin(caller_, 1);
  end(1);
  end(1);
  calls_.cancel(caller_.near.get(), actor_, 1);
  calls_.cancel_all();
  EXPECT_FALSE(before.cancelled());
  EXPECT_FALSE(begin(caller_, 1).cancelled()) << "the next of that number is a new call";
}

TEST_F(ActiveCallsTest, WhatHearsOfItsCancellationMayCallBack) {
  const CallContext call = begin(caller_, 1), second = begin(caller_, 2);
  bool heard = false;
  const std::stop_callback on_stop(call.stop_token(), [&] {
    end(1);
    calls_.cancel(caller_.near.get(), actor_, 2);
    heard = true;
  });
  calls_.cancel(caller_.near.get(), actor_, 1);
  EXPECT_TRUE(heard);
  EXPECT_TRUE(second.cancelled());
}

TEST_F(ActiveCallsTest, AStreamIsThatOfItsCallUntilTheEnd) {
  begin(caller_, 1);
  begin(caller_, 2);
  EXPECT_EQ(stream(1).use_count(), 0);
  // Nothing looks into it, but for whether it is still there.
  auto owner = std::make_shared<int>(0);
  calls_.set_stream(caller_.near.get(), actor_, 1, std::shared_ptr<StreamSender>(owner, nullptr));
  const std::weak_ptr<int> held = std::exchange(owner, nullptr);
  EXPECT_GT(stream(1).use_count(), 0);
  EXPECT_EQ(stream(2).use_count(), 0);
  end(1);
  EXPECT_EQ(stream(1).use_count(), 0);
  EXPECT_TRUE(held.expired());
}

}  // namespace
}  // namespace runtime
