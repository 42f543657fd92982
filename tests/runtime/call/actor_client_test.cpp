#include "runtime/call/actor_client.h"

#include "caller_fixture.h"

namespace runtime {
namespace {

using test::FakeWorker;

using ActorClientTest = test::CallerTest;

TEST_F(ActorClientTest, ACallBecomesAFrameAndItsReplyTheResult) {
  auto adder = client(address(3));
  ObjectStatePtr result = add(*adder, 5);
  ASSERT_TRUE(has_calls(0, 1));
  with_worker(0, [&](FakeWorker& worker) {
    EXPECT_EQ(worker.dialled, *Endpoint::unix_socket("/run/worker"));
    const CallRequest& request = worker.calls[0].request;
    EXPECT_EQ(request.actor, actor_);
    EXPECT_EQ(request.incarnation, 3u);
    EXPECT_EQ(request.session, 77u);
    EXPECT_EQ(request.sequence, 1u);
    EXPECT_FALSE(request.lends);
    EXPECT_GT(request.deadline_ms, 30'000u);
    EXPECT_LE(request.deadline_ms, 60'000u);
    worker.answer(0, 8);
  });
  EXPECT_EQ(value_of(result), 8);
}

TEST_F(ActorClientTest, AFailureIsToldWithTheCallThatItIsOf) {
  auto adder = client(address());
  ObjectStatePtr result = add(*adder, 5);
  ASSERT_TRUE(has_calls(0, 1));
  with_worker(0, [](FakeWorker& worker) { worker.refuse(0, task_failed("overflow")); });
  EXPECT_EQ(failure_of(result), task_failed(adder->describe() + ": add: overflow"));
}

TEST_F(ActorClientTest, WhatCannotBeSentFailsAtOnce) {
  auto adder = client(address());
  ObjectStatePtr unknown = with_arguments<std::tuple<int>>(
      [&](Encoder& encoder) {
        return adder->call(typeid(test::Adder), MethodKey::of(&test::Adder::unregistered), encoder,
                           std::chrono::seconds(60));
      },
      1);
  ASSERT_TRUE(unknown->is_settled());
  EXPECT_EQ(unknown->failure().code(), ErrorCode::kInvalidArgument);
  objects_.full = resource_exhausted("the store is full");
  ObjectStatePtr unstored = add(*adder, 1);
  ASSERT_TRUE(unstored->is_settled());
  EXPECT_EQ(unstored->failure(), resource_exhausted("arguments of add: the store is full"));
  run_on(loop_, [&] { EXPECT_EQ(node_.dials, 0); });
}

TEST_F(ActorClientTest, CallsKeepTheirOrderWhenOneWaitsForItsArgument) {
  auto adder = client(address());
  auto late = std::make_shared<ObjectState>(nullptr);
  ObjectStatePtr first = add(*adder, ObjectRef<int>(late));
  ObjectStatePtr second = add(*adder, 2);
  ASSERT_TRUE(comes_true(loop_, [&] { return node_.workers.size() == 1; }));
  with_worker(0, [](FakeWorker& worker) { EXPECT_TRUE(worker.calls.empty()); });
  ObjectValue seven;
  Encoder encoder;
  encode_value(encoder, 7);
  seven.bytes = encoder.to_buffer();
  late->fulfil(std::move(seven));
  ASSERT_TRUE(has_calls(0, 2));
  with_worker(0, [](FakeWorker& worker) {
    EXPECT_EQ(worker.calls[0].arguments.refs.size(), 1u);
    EXPECT_TRUE(worker.calls[1].arguments.refs.empty());
    worker.answer(1, 22);
    worker.answer(0, 11);
  });
  EXPECT_EQ(value_of(first), 11);
  EXPECT_EQ(value_of(second), 22);
}

TEST_F(ActorClientTest, OutOfOrderACallWaitsForItsOwnArgumentOnly) {
  ActorAddress free = address();
  free.caller_options = encode_caller_options({.out_of_order = true});
  auto adder = client(free);
  auto late = std::make_shared<ObjectState>(nullptr);
  ObjectStatePtr first = add(*adder, ObjectRef<int>(late));
  ObjectStatePtr second = add(*adder, 2);
  ASSERT_TRUE(has_calls(0, 1));
  with_worker(0, [](FakeWorker& worker) { worker.answer(0, 2); });
  EXPECT_EQ(value_of(second), 2);
  EXPECT_FALSE(first->is_settled());
}

TEST_F(ActorClientTest, ACallWhoseActorHasDiedFailsWithTheCause) {
  auto adder = client(address(4));
  ObjectStatePtr result = add(*adder, 1);
  ASSERT_TRUE(has_calls(0, 1));
  with_worker(0, [](FakeWorker& worker) { worker.die(); });
  ASSERT_TRUE(comes_true(loop_, [&] { return node_.states.size() == 1; }));
  EXPECT_FALSE(result->is_settled()) << "before the head has said what became of the actor";
  run_on(loop_, [&] {
    EXPECT_EQ(node_.states[0].actor, actor_);
    EXPECT_EQ(node_.states[0].incarnation, 4u);
  });
  answer_state(1, state_of(ActorPhase::kDead, 4));
  EXPECT_EQ(failure_of(result).code(), ErrorCode::kActorDied);
  EXPECT_TRUE(adder->is_closed());
  ObjectStatePtr later = add(*adder, 2);
  EXPECT_TRUE(later->is_settled());
  EXPECT_EQ(later->failure().code(), ErrorCode::kActorDied);
}

TEST_F(ActorClientTest, ACallIsSentAgainToTheNextStartIfItMayBe) {
  auto adder = client(address(1));
  ObjectStatePtr once = add(*adder, 1);
  ObjectStatePtr again = add(*adder, 2, std::chrono::seconds(60), 1);
  ASSERT_TRUE(has_calls(0, 2));
  with_worker(0, [](FakeWorker& worker) { worker.die(); });
  answer_state(1, state_of(ActorPhase::kStarting, 1, 1));
  EXPECT_EQ(failure_of(once).code(), ErrorCode::kActorDied);
  EXPECT_TRUE(adder->is_restarting());
  ObjectStatePtr meanwhile = add(*adder, 3);
  answer_address(1, address(2));
  ASSERT_TRUE(has_calls(1, 2));
  with_worker(1, [](FakeWorker& worker) {
    EXPECT_EQ(worker.calls[0].request.incarnation, 2u);
    worker.answer(0, 20);
    worker.answer(1, 30);
  });
  EXPECT_EQ(value_of(again), 20);
  EXPECT_EQ(value_of(meanwhile), 30);
}

TEST_F(ActorClientTest, ACallThatWasRefusedUnrunGoesToTheNextStart) {
  auto adder = client(address(1));
  ObjectStatePtr result = add(*adder, 1);
  ASSERT_TRUE(has_calls(0, 1));
  with_worker(0, [](FakeWorker& worker) { worker.refuse(0, not_found("it has ended"), true); });
  answer_state(1, state_of(ActorPhase::kAlive, 2, 1));
  answer_address(1, address(2));
  ASSERT_TRUE(has_calls(1, 1));
  with_worker(1, [](FakeWorker& worker) { worker.answer(0, 10); });
  EXPECT_EQ(value_of(result), 10);
}

TEST_F(ActorClientTest, AConnectionThatCannotBeMadeIsTriedAgainWhileTheActorLives) {
  run_on(loop_, [&] { node_.refused_dials = 2; });
  auto adder = client(address(1));
  ObjectStatePtr result = add(*adder, 1, std::chrono::seconds(60), 2);
  answer_state(1, state_of(ActorPhase::kAlive, 1));
  answer_state(2, state_of(ActorPhase::kAlive, 1));
  ASSERT_TRUE(has_calls(0, 1));
  run_on(loop_, [&] { EXPECT_EQ(node_.dials, 3); });
  with_worker(0, [](FakeWorker& worker) { worker.answer(0, 10); });
  EXPECT_EQ(value_of(result), 10);
}

TEST_F(ActorClientTest, ACallWithoutAReplyEndsAtItsDeadlineAndTheActorIsTold) {
  auto adder = client(address());
  ObjectStatePtr result = add(*adder, 1, std::chrono::seconds(1));
  ASSERT_TRUE(has_calls(0, 1));
  EXPECT_EQ(failure_of(result).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_NE(result->failure().message().find("(of 1000 ms)"), std::string::npos);
  EXPECT_TRUE(comes_true(
      loop_, [&] { return node_.workers[0]->has_notice(CallNotice::Kind::kCancel, 1); }));
}

TEST_F(ActorClientTest, ACallThatWaitsForItsConnectionEndsAtItsDeadline) {
  run_on(loop_, [&] { node_.reachable = false; });
  auto adder = client(address());
  ObjectStatePtr result = add(*adder, 1, std::chrono::milliseconds(20));
  EXPECT_EQ(failure_of(result).code(), ErrorCode::kDeadlineExceeded);
}

TEST_F(ActorClientTest, ACallIsCancelledWhereItIs) {
  run_on(loop_, [&] { node_.reachable = false; });
  auto adder = client(address());
  ObjectStatePtr unsent = add(*adder, 1);
  auto producer = unsent->producer();
  ASSERT_NE(producer, nullptr);
  EXPECT_TRUE(producer->cancel(producer, CancelMode::kCooperative).ok());
  ASSERT_TRUE(unsent->is_settled());
  EXPECT_EQ(unsent->failure().code(), ErrorCode::kCancelled);
  ObjectStatePtr sent = add(*adder, 2);
  ASSERT_TRUE(comes_true(loop_, [&] { return node_.waiting.size() == 1; }));
  run_on(loop_, [&] { std::exchange(node_.waiting, {})[0](); });
  ASSERT_TRUE(has_calls(0, 1));
  producer = sent->producer();
  EXPECT_TRUE(producer->cancel(producer, CancelMode::kForce).ok());
  EXPECT_TRUE(comes_true(
      loop_, [&] { return node_.workers[0]->has_notice(CallNotice::Kind::kForceCancel, 1); }));
  EXPECT_FALSE(sent->is_settled()) << "the actor's answer settles it";
  with_worker(0, [](FakeWorker& worker) { worker.refuse(0, cancelled("as asked")); });
  EXPECT_EQ(failure_of(sent).code(), ErrorCode::kCancelled);
}

TEST_F(ActorClientTest, HeldCallsFailAndTheEndOfTheOthersIsTold) {
  auto adder = client(address());
  ObjectStatePtr before = add(*adder, 1);
  ASSERT_TRUE(has_calls(0, 1));
  std::atomic<int> quiet = 0;
  adder->hold_calls(actor_died("it is being ended"), [&] { ++quiet; });
  ObjectStatePtr held = add(*adder, 2);
  ASSERT_TRUE(held->is_settled());
  EXPECT_EQ(held->failure().code(), ErrorCode::kActorDied);
  EXPECT_EQ(quiet, 0);
  with_worker(0, [](FakeWorker& worker) { worker.answer(0, 1); });
  EXPECT_EQ(value_of(before), 1);
  EXPECT_TRUE(support::eventually([&] { return quiet == 1; }));
  adder->resume_calls();
  ObjectStatePtr after = add(*adder, 3);
  ASSERT_TRUE(has_calls(0, 2));
  with_worker(0, [](FakeWorker& worker) { worker.answer(1, 3); });
  EXPECT_EQ(value_of(after), 3);
}

TEST_F(ActorClientTest, ArgumentsAreLentUntilTheActorGivesThemBackOrDies) {
  auto adder = client(address());
  auto settled = [] {
    Encoder encoder;
    encode_value(encoder, 7);
    ObjectValue value;
    value.bytes = encoder.to_buffer();
    return ObjectState::ready(nullptr, std::move(value));
  };
  ObjectStatePtr given_back = settled();
  ObjectStatePtr kept = settled();
  ObjectStatePtr first = add(*adder, ObjectRef<int>(given_back));
  ObjectStatePtr second = add(*adder, ObjectRef<int>(kept));
  ASSERT_TRUE(has_calls(0, 2));
  with_worker(0, [&](FakeWorker& worker) {
    EXPECT_TRUE(worker.calls[0].request.lends);
    worker.answer(0, 1);
    worker.answer(1, 2);
  });
  EXPECT_EQ(value_of(first), 1);
  EXPECT_EQ(value_of(second), 2);
  first = second = nullptr;
  EXPECT_GT(given_back.use_count(), 1) << "the actor may still use it";
  with_worker(0, [&](FakeWorker& worker) {
    send_notice(*worker.pair.far, {actor_, 1, CallNotice::Kind::kArgumentsReleased}, Flush::kNow);
  });
  EXPECT_TRUE(support::eventually([&] { return given_back.use_count() == 1; }));
  EXPECT_EQ(objects_.lingering, 0);
  with_worker(0, [](FakeWorker& worker) { worker.die(); });
  EXPECT_TRUE(support::eventually([&] { return objects_.lingering == 1; }));
}

TEST_F(ActorClientTest, ANewerAddressMovesTheClient) {
  auto adder = client(address(1));
  ObjectStatePtr lost = add(*adder, 1);
  ASSERT_TRUE(has_calls(0, 1));
  const ActorAddress newer = address(2);
  EXPECT_EQ(client(newer), adder);
  EXPECT_EQ(adder->address(), newer);
  EXPECT_TRUE(comes_true(loop_, [&] { return node_.workers[0]->pair.far->closed(); }));
  answer_state(1, state_of(ActorPhase::kAlive, 2, 1));
  EXPECT_EQ(failure_of(lost).code(), ErrorCode::kUnavailable) << "it may have run";
  EXPECT_EQ(client(address(1))->address(), newer) << "an older one changes nothing";
  ObjectStatePtr next = add(*adder, 2);
  ASSERT_TRUE(has_calls(1, 1));
  with_worker(1, [](FakeWorker& worker) { worker.answer(0, 5); });
  EXPECT_EQ(value_of(next), 5);
}

TEST_F(ActorClientTest, AClientLivesAsLongAsItsCalls) {
  auto adder = client(address());
  ObjectStatePtr result = add(*adder, 1);
  ASSERT_TRUE(has_calls(0, 1));
  adder.reset();
  EXPECT_NE(clients_.find(actor_), nullptr);
  with_worker(0, [](FakeWorker& worker) { worker.answer(0, 4); });
  EXPECT_EQ(value_of(result), 4);
  EXPECT_TRUE(support::eventually([&] { return clients_.find(actor_) == nullptr; }));
  EXPECT_TRUE(comes_true(loop_, [&] { return node_.workers[0]->pair.far->closed(); }));
}

}  // namespace
}  // namespace runtime
