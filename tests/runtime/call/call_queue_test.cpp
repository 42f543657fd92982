#include "runtime/call/call_queue.h"

#include <gtest/gtest.h>

#include "runtime/call/call_numbers.h"
#include "runtime/call/outgoing_call.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

struct CallQueueTest : ::testing::Test {
  CallNumbers numbers;
  CallQueue queue{numbers, false};
  CallQueue free_queue{numbers, true};
  std::vector<BlockedCall> blocked;
  std::vector<FailedCall> failed;

  static ObjectStatePtr pending() { return std::make_shared<ObjectState>(nullptr); }
  OutgoingCallPtr make_call(const ObjectStatePtr& argument = nullptr,
                            Deadline deadline = Deadline::max()) {
    auto call = std::make_shared<OutgoingCall>();
    call->deadline = deadline;
    if (argument) call->arguments.refs.push_back(argument);
    return call;
  }
  OutgoingCallPtr push(CallQueue& to, const OutgoingCallPtr& call) {
    to.push(call);
    return call;
  }
  /// As if it had been sent.
  OutgoingCallPtr send(CallQueue& from) {
    OutgoingCallPtr call = from.pop(blocked);
    if (call) call->sequence = numbers.take();
    return call;
  }
};

TEST_F(CallQueueTest, CallsLeaveInTheirOrder) {
  const auto first = push(queue, make_call());
  const auto second = push(queue, make_call());
  EXPECT_EQ(queue.pop(blocked), first);
  EXPECT_EQ(queue.pop(blocked), second);
  EXPECT_EQ(queue.pop(blocked), nullptr);
  EXPECT_TRUE(queue.is_empty());
}

TEST_F(CallQueueTest, AnArgumentThatIsNotThereHoldsUpTheLine) {
  const ObjectStatePtr argument = pending();
  const auto first = push(queue, make_call(argument));
  push(queue, make_call());
  EXPECT_EQ(queue.pop(blocked), nullptr);
  ASSERT_EQ(blocked.size(), 1u);
  EXPECT_EQ(blocked[0].blocker, argument);
  EXPECT_EQ(queue.pop(blocked), nullptr);
  EXPECT_EQ(blocked.size(), 1u) << "the owner subscribes once";
  argument->fulfil({});
  queue.on_settled(argument.get(), blocked[0].aside);
  EXPECT_EQ(queue.pop(blocked), first);
}

TEST_F(CallQueueTest, OutOfOrderCallsWaitAside) {
  const ObjectStatePtr argument = pending();
  const auto first = push(free_queue, make_call(argument));
  const auto second = push(free_queue, make_call());
  EXPECT_EQ(free_queue.pop(blocked), second);
  EXPECT_EQ(free_queue.pop(blocked), nullptr);
  EXPECT_TRUE(free_queue.is_waiting());
  EXPECT_FALSE(free_queue.has_line());
  argument->fulfil({});
  ASSERT_EQ(blocked.size(), 1u);
  free_queue.on_settled(argument.get(), blocked[0].aside);
  EXPECT_EQ(free_queue.pop(blocked), first);
  EXPECT_TRUE(free_queue.is_empty());
}

TEST_F(CallQueueTest, ARemovedCallDoesNotComeBackFromAside) {
  const ObjectStatePtr argument = pending();
  const auto call = push(free_queue, make_call(argument));
  EXPECT_EQ(free_queue.pop(blocked), nullptr);
  EXPECT_TRUE(free_queue.remove(call));
  EXPECT_FALSE(free_queue.remove(call));
  free_queue.on_settled(argument.get(), blocked[0].aside);
  EXPECT_TRUE(free_queue.is_empty());
}

TEST_F(CallQueueTest, CallsThatComeBackGoBeforeLaterOnes) {
  push(queue, make_call());
  push(queue, make_call());
  const auto first = send(queue);
  const auto second = send(queue);
  const auto third = push(queue, make_call());
  queue.put_back(second);
  queue.put_back(first);
  EXPECT_EQ(first->sequence, 0u);
  EXPECT_EQ(queue.pop(blocked), first);
  EXPECT_EQ(queue.pop(blocked), second);
  EXPECT_EQ(queue.pop(blocked), third);
}

TEST_F(CallQueueTest, OrphansAreSentAgainWhileTheyHaveRetries) {
  push(queue, make_call());
  push(queue, make_call())->retries_left = 1;
  push(queue, make_call())->retries_left = -1;
  const auto once = send(queue);
  const auto twice = send(queue);
  const auto always = send(queue);
  for (const auto& call : {always, twice, once}) queue.add_orphan(call);
  EXPECT_TRUE(queue.settle_orphans(unavailable("gone"), true, failed));
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].call, once);
  EXPECT_EQ(twice->retries_left, 0);
  EXPECT_EQ(always->retries_left, -1);
  EXPECT_TRUE(numbers.all_ended()) << "sent again they have other numbers";
  EXPECT_EQ(send(queue), twice);
  EXPECT_EQ(send(queue), always);
}

TEST_F(CallQueueTest, WhatWasNotSentIsKeptWhenTheActorRestarts) {
  const auto call = push(queue, make_call());
  queue.orphan_line();
  EXPECT_FALSE(queue.is_waiting());
  EXPECT_TRUE(queue.settle_orphans(unavailable("gone"), true, failed));
  EXPECT_TRUE(queue.has_line());
  queue.orphan_line();
  EXPECT_FALSE(queue.settle_orphans(unavailable("gone"), false, failed));
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].call, call);
}

TEST_F(CallQueueTest, ForcedCallsAreNotSentAgain) {
  push(queue, make_call())->retries_left = 5;
  const auto call = send(queue);
  call->forced = true;
  queue.add_orphan(call);
  EXPECT_FALSE(queue.settle_orphans(unavailable("gone"), true, failed));
  EXPECT_EQ(failed.size(), 1u);
}

TEST_F(CallQueueTest, CallsExpireWhereverTheyAre) {
  const Deadline now = steady_now();
  push(queue, make_call(nullptr, now - 1ms));
  queue.add_orphan(send(queue));
  push(queue, make_call(nullptr, now - 2ms));
  const auto later = push(queue, make_call(nullptr, now + 1h));
  EXPECT_EQ(queue.earliest_deadline(), now - 2ms);
  queue.expire(now, true, failed);
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_NE(failed[0].why.message().find("the actor is being restarted"), std::string::npos);
  EXPECT_NE(failed[1].why.message().find("the connection was lost"), std::string::npos);
  EXPECT_TRUE(numbers.all_ended());
  EXPECT_EQ(queue.earliest_deadline(), now + 1h);
  EXPECT_EQ(queue.pop(blocked), later);
}

TEST_F(CallQueueTest, AllFailWithTheActor) {
  push(queue, make_call());
  queue.add_orphan(send(queue));
  push(queue, make_call());
  queue.fail_all(actor_died("gone"), failed);
  EXPECT_EQ(failed.size(), 2u);
  EXPECT_TRUE(queue.is_empty());
  push(free_queue, make_call(pending()));
  EXPECT_EQ(free_queue.pop(blocked), nullptr);
  free_queue.fail_line(unavailable("gone"), failed);
  EXPECT_EQ(failed.size(), 2u);
  free_queue.fail_all(unavailable("gone"), failed);
  EXPECT_EQ(failed.size(), 3u);
}

TEST_F(CallQueueTest, IsHeldAsLongAsSomeoneHoldsIt) {
  int told = 0;
  EXPECT_EQ(queue.held(), nullptr);
  queue.hold(cancelled("first"), [&] { ++told; });
  queue.hold(cancelled("second"), [&] { ++told; });
  ASSERT_NE(queue.held(), nullptr);
  EXPECT_EQ(queue.held()->message(), "second");
  for (const auto& tell : queue.take_quiet()) tell();
  EXPECT_EQ(told, 2);
  EXPECT_TRUE(queue.take_quiet().empty());
  queue.resume();
  EXPECT_NE(queue.held(), nullptr);
  queue.resume();
  EXPECT_EQ(queue.held(), nullptr);
}

}  // namespace
}  // namespace runtime
