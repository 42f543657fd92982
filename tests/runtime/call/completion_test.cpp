// Objects in the order in which they settle, and an object that settles with others.
#include "runtime/call/completion.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/call/actor_options.h"
#include "runtime/call/completion_queue.h"
#include "runtime/call/object_ref.h"
#include "tests/runtime/call/fake_objects.h"
#include "tests/support/blocking_thread.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using Positions = std::vector<std::size_t>;

/// Objects that the test settles.
class CompletionTest : public ::testing::Test {
 protected:
  void make(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      objects_.push_back(std::make_shared<ObjectState>(context_.get()));
  }
  std::vector<ObjectRef<int>> refs() const {
    return std::vector<ObjectRef<int>>(objects_.begin(), objects_.end());
  }
  void settle(std::size_t at, int value = 0) { objects_[at]->fulfil(test::small_value(value)); }
  static Deadline soon() { return deadline_after(20s); }
  /// All that have settled.
  static Positions rest(CompletionQueue& queue) {
    Positions positions;
    while (auto position = queue.next(Deadline::min())) positions.push_back(*position);
    return positions;
  }

  EventLoop loop_;
  const test::FakeObjectContext context_{loop_};
  std::vector<ObjectStatePtr> objects_;
};

// -- The queue

TEST_F(CompletionTest, ThoseThatAreThereComeFirstAndEachComesOnce) {
  make(5);
  settle(3);
  settle(1);
  CompletionQueue queue(objects_);
  EXPECT_EQ(queue.remaining(), 5u);
  settle(4);
  settle(0);
  EXPECT_EQ(rest(queue), (Positions{1, 3, 4, 0}));
  EXPECT_EQ(queue.remaining(), 1u);
  EXPECT_FALSE(queue.next(deadline_after(1ms))) << "its time is up";
  objects_[2]->fail(task_failed("a failure counts, too"));
  EXPECT_EQ(queue.next(soon()), 2u);
  EXPECT_FALSE(queue.next(Deadline::max())) << "all have come";
  EXPECT_EQ(queue.remaining(), 0u);
}

TEST_F(CompletionTest, OnesThatHaveAllSettledNeedNoLoop) {
  const ObjectStatePtr settled = ObjectState::ready(nullptr, {});
  CompletionQueue queue({settled, settled});
  EXPECT_EQ(rest(queue), (Positions{0, 1})) << "the same object, at two positions";
  CompletionQueue none({});
  EXPECT_FALSE(none.next(Deadline::max()));
}

TEST_F(CompletionTest, LetsGoOfWhatItHasReturned) {
  make(2);
  const std::weak_ptr<ObjectState> first = objects_[0], second = objects_[1];
  CompletionQueue queue(objects_);
  settle(0);
  const ObjectStatePtr late = objects_[1];
  objects_.clear();
  EXPECT_FALSE(first.expired());
  EXPECT_EQ(queue.next(soon()), 0u);
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(second.expired());
}

TEST_F(CompletionTest, OnesThatSettleAfterItsEndConcernItNoMore) {
  make(3);
  {
    CompletionQueue queue(objects_);
    settle(0);
  }
  settle(1);
  CompletionQueue queue(objects_);
  settle(2);
  EXPECT_EQ(rest(queue), (Positions{0, 1, 2}));
}

TEST_F(CompletionTest, ASettledObjectWakesTheThreadThatWaits) {
  make(3);
  CompletionQueue queue(objects_);
  support::BlockingThread waiting;
  Positions came;
  std::thread thread([&] {
    waiting.begin();
    while (auto position = queue.next(soon())) came.push_back(*position);
  });
  EXPECT_TRUE(waiting.is_blocked());
  for (std::size_t at : {2u, 0u, 1u}) settle(at);
  thread.join();
  EXPECT_EQ(came, (Positions{2, 0, 1}));
}

TEST_F(CompletionTest, TheEndOfTheLoopEndsAWait) {
  make(1);
  CompletionQueue queue(objects_);
  support::BlockingThread waiting;
  std::thread thread([&] {
    waiting.begin();
    EXPECT_FALSE(queue.next(Deadline::max()));
  });
  EXPECT_TRUE(waiting.is_blocked());
  loop_.stop();
  thread.join();
}

// -- The range

TEST_F(CompletionTest, ARangeHasThePositionAndTheObject) {
  make(3);
  Completions<int> completions(refs(), soon());
  settle(2, 20);
  settle(0, 0);
  settle(1, 10);
  Positions came;
  for (const auto& [index, ref] : completions) {
    came.push_back(index);
    EXPECT_EQ(*fetch<int>(*ref.state(), Deadline::min()), static_cast<int>(10 * index));
  }
  EXPECT_EQ(came, (Positions{2, 0, 1}));
  EXPECT_EQ(completions.remaining(), 0u);
}

TEST_F(CompletionTest, ARangeEndsAtItsDeadlineAndSaysHowManyAreMissing) {
  make(3);
  settle(1);
  Completions<int> completions(refs(), deadline_after(1ms));
  std::size_t came = 0;
  for (const auto& completed : completions) {
    EXPECT_EQ(completed.index, 1u);
    ++came;
  }
  EXPECT_EQ(came, 1u);
  EXPECT_EQ(completions.remaining(), 2u);
}

TEST_F(CompletionTest, RefsToNothingComeWithTheOthers) {
  make(1);
  settle(0, 7);
  std::vector<ObjectRef<int>> given{ObjectRef<int>(), refs()[0], ObjectRef<int>()};
  Completions<int> completions(given, soon());
  Positions invalid;
  while (auto completed = completions.next()) {
    if (completed->ref.is_valid())
      EXPECT_EQ(completed->index, 1u);
    else
      invalid.push_back(completed->index);
  }
  ASSERT_EQ(invalid.size(), 2u);
  EXPECT_EQ(invalid[0] + invalid[1], 2u) << "each once";
  EXPECT_EQ(completions.remaining(), 0u);
}

TEST_F(CompletionTest, ARangeLetsGoOfWhatItHasHandedOut) {
  make(2);
  settle(0);
  const std::weak_ptr<ObjectState> first = objects_[0];
  Completions<int> completions(refs(), soon());
  Completions<int> moved = std::move(completions);
  objects_.erase(objects_.begin());
  EXPECT_EQ(moved.next()->index, 0u);
  EXPECT_TRUE(first.expired());
}

// -- when_all

using completion_detail::when_all;

TEST_F(CompletionTest, WhenAllSettlesWithTheLast) {
  make(3);
  const ObjectStatePtr all = when_all(context_.get(), objects_);
  settle(2);
  settle(0);
  EXPECT_FALSE(all->is_settled());
  settle(1);
  ASSERT_TRUE(all->is_settled());
  EXPECT_TRUE(all->failure().ok());
  const ObjectStatePtr of_settled = when_all(context_.get(), objects_);
  EXPECT_TRUE(of_settled->is_settled());
  EXPECT_TRUE(when_all(context_.get(), {})->is_settled());
}

TEST_F(CompletionTest, WhenAllFailsWithTheFirstFailureAtOnce) {
  make(3);
  const ObjectStatePtr all = when_all(context_.get(), objects_);
  objects_[2]->fail(task_failed("too hot"));
  ASSERT_TRUE(all->is_settled());
  EXPECT_EQ(all->failure(), task_failed("rank 2: too hot"));
  objects_[0]->fail(task_failed("too cold"));
  settle(1);
  EXPECT_EQ(all->failure(), task_failed("rank 2: too hot"));
}

TEST_F(CompletionTest, WhenAllIsNotCancelledAndNamesWhatItWaitsFor) {
  struct Call final : Producer {
    Status cancel(const std::shared_ptr<Producer>&, CancelMode) override { return {}; }
  };
  make(2);
  const auto call = std::make_shared<Call>();
  objects_[1]->set_producer(call);
  const ObjectStatePtr all = when_all(context_.get(), objects_);
  const auto producer = all->producer();
  ASSERT_NE(producer, nullptr);
  EXPECT_EQ(producer->cancel(producer, CancelMode::kForce).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(producer->parts(), std::vector<std::shared_ptr<Producer>>{call});
  settle(1);
  EXPECT_TRUE(producer->parts().empty());
  settle(0);
  EXPECT_EQ(all->producer(), nullptr) << "it is settled";
}

TEST_F(CompletionTest, ALongChainSettlesWithoutADeepStack) {
  make(1);
  std::vector<ObjectStatePtr> chain{objects_[0]};
  for (int i = 0; i < 200'000; ++i) chain.push_back(when_all(context_.get(), {chain.back()}));
  settle(0);
  EXPECT_TRUE(chain.back()->is_settled());
}

TEST_F(CompletionTest, AFailureGoesThroughAChain) {
  make(1);
  const ObjectStatePtr inner = when_all(context_.get(), objects_);
  const ObjectStatePtr outer = when_all(context_.get(), {inner});
  objects_[0]->fail(task_failed("no"));
  EXPECT_EQ(outer->failure(), task_failed("rank 0: rank 0: no"));
}

}  // namespace
}  // namespace runtime
