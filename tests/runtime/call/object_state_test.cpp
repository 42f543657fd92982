#include "runtime/call/object_state.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <utility>

#include "runtime/call/object_ref.h"
#include "tests/runtime/call/fake_objects.h"
#include "tests/support/blocking_thread.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

struct ObjectStateTest : ::testing::Test {
  EventLoop loop;
  test::FakeObjectContext objects{loop};
  ObjectContextPtr context = objects.get();

  ObjectStatePtr pending() { return std::make_shared<ObjectState>(context); }
  /// One whose value is in a store.
  ObjectStatePtr stored(const std::string& text) {
    ObjectValue value;
    value.stored = objects.references.borrow(objects.references.store->put(text), false);
    return ObjectState::ready(context, std::move(value));
  }
  std::uint64_t inline_objects() const { return context->inline_objects; }
};

TEST_F(ObjectStateTest, WaitEndsWhenItIsFulfilled) {
  auto state = pending();
  support::BlockingThread waiting;
  std::thread other([&] {
    EXPECT_TRUE(waiting.is_blocked());
    state->fulfil(test::small_value(7));
  });
  waiting.begin();
  EXPECT_TRUE(state->wait(deadline_after(30s)));
  other.join();
  Result<int> value = fetch<int>(*state, deadline_after(0s));
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, 7);
}

TEST_F(ObjectStateTest, WaitEndsAtTheDeadline) {
  auto state = pending();
  EXPECT_FALSE(state->wait(deadline_after(20ms)));
  EXPECT_EQ(state->open(deadline_after(20ms)).status().code(), ErrorCode::kDeadlineExceeded);
}

TEST_F(ObjectStateTest, IsSettledOnce) {
  auto state = pending();
  state->fail(not_found("first"));
  state->fulfil(test::small_value(1));
  state->fail(cancelled("third"));
  EXPECT_EQ(state->failure(), not_found("first"));
}

TEST_F(ObjectStateTest, ActionsRunOnceWhetherBeforeOrAfter) {
  auto state = pending();
  int ran = 0;
  state->then([&] { ++ran; });
  EXPECT_EQ(ran, 0);
  state->fulfil(test::small_value(1));
  EXPECT_EQ(ran, 1);
  state->then([&] { ++ran; });
  EXPECT_EQ(ran, 2);
}

TEST_F(ObjectStateTest, AnActionMayUseTheState) {
  auto state = pending();
  state->then([&] { EXPECT_TRUE(state->wait(Deadline::max())); });
  state->fulfil(test::small_value(1));
}

TEST_F(ObjectStateTest, ManyThreadsWaitForOne) {
  auto state = pending();
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  std::array<support::BlockingThread, 8> waiting;
  for (support::BlockingThread& each : waiting) {
    threads.emplace_back([&] {
      each.begin();
      if (state->wait(deadline_after(30s))) ++woken;
    });
  }
  for (const support::BlockingThread& each : waiting) EXPECT_TRUE(each.is_blocked());
  state->fulfil(test::small_value(1));
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(woken, 8);
}

TEST_F(ObjectStateTest, ShutDownEndsWaiting) {
  auto state = pending();
  support::BlockingThread waiting;
  std::thread other([&] {
    EXPECT_TRUE(waiting.is_blocked());
    objects.shut_down = true;
    loop.stop();
  });
  waiting.begin();
  EXPECT_EQ(state->open(Deadline::max()).status().code(), ErrorCode::kCancelled);
  other.join();
}

TEST_F(ObjectStateTest, TheLoanGoesWithTheState) {
  auto loan = std::make_shared<int>(1);
  ObjectValue value = test::small_value(1);
  value.loan = loan;
  auto state = ObjectState::ready(context, std::move(value));
  EXPECT_EQ(loan.use_count(), 2);
  state.reset();
  EXPECT_EQ(loan.use_count(), 1);
}

TEST_F(ObjectStateTest, CountsObjectsThatAreNotInAStore) {
  EXPECT_EQ(inline_objects(), 0u);
  {
    const ObjectStatePtr small = ObjectState::ready(context, test::small_value(1));
    const ObjectStatePtr failed = ObjectState::failed(context, not_found("x"));
    const ObjectStatePtr waits = pending();
    EXPECT_EQ(inline_objects(), 3u);
    const ObjectStatePtr large = stored("abc");
    EXPECT_EQ(inline_objects(), 3u);
    ObjectValue value;
    value.stored = large->value().stored;
    waits->fulfil(std::move(value));
    EXPECT_EQ(inline_objects(), 2u);
  }
  EXPECT_EQ(inline_objects(), 0u);
}

TEST_F(ObjectStateTest, OpensWhatIsInAStore) {
  const ObjectStatePtr object = stored("abc");
  Result<Buffer> bytes = object->open(Deadline::max());
  ASSERT_TRUE(bytes.ok()) << bytes.status().to_string();
  EXPECT_EQ(bytes->text(), "abc");
  Result<Buffer> later = cancelled("not called back");
  object->open(Deadline::max(), [&](Result<Buffer> opened) { later = std::move(opened); });
  ASSERT_TRUE(later.ok()) << later.status().to_string();
  EXPECT_EQ(later->text(), "abc");
  objects.references.store->failure = deadline_exceeded("slow");
  EXPECT_EQ(object->open(Deadline::max()).status(), deadline_exceeded("slow"));
  object->open(Deadline::max(), [&](Result<Buffer> opened) { later = std::move(opened); });
  EXPECT_EQ(later.status(), deadline_exceeded("slow"));
}

TEST_F(ObjectStateTest, BytesOfAStoreKeepTheContext) {
  const long before = context.use_count();
  Buffer bytes;
  {
    ObjectStatePtr object = stored("abc");
    bytes = *object->open(Deadline::max());
  }
  EXPECT_GT(context.use_count(), before) << "the pin is given up by way of its loop";
  bytes = {};
  EXPECT_EQ(context.use_count(), before);
}

TEST_F(ObjectStateTest, ASinkThatIsTakenOutHearsNothing) {
  struct Sink final : WaitSink {
    void on_settled(WaitNode&, const ObjectState&) override { ++heard; }
    int heard = 0;
  } sink;
  const ObjectStatePtr state = pending();
  WaitNode first{.sink = &sink}, second{.sink = &sink}, third{.sink = &sink};
  for (WaitNode* node : {&first, &second, &third}) EXPECT_TRUE(state->add_waiter(*node));
  state->remove_waiter(second);
  state->fulfil(test::small_value(1));
  EXPECT_EQ(sink.heard, 2);
  EXPECT_FALSE(state->add_waiter(second)) << "it is settled";
}

TEST_F(ObjectStateTest, ForgetsItsProducerOnceItIsSettled) {
  struct Maker final : Producer {
    Status cancel(const std::shared_ptr<Producer>&, CancelMode) override { return {}; }
  };
  const auto maker = std::make_shared<Maker>();
  const ObjectStatePtr state = pending();
  EXPECT_EQ(state->producer(), nullptr);
  state->set_producer(maker);
  EXPECT_EQ(state->producer(), maker);
  state->fail(not_found("x"));
  EXPECT_EQ(state->producer(), nullptr);
}

}  // namespace
}  // namespace runtime
