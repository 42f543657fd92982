#include "runtime/call/task_pool.h"

#include "caller_fixture.h"

namespace runtime {
namespace {

using test::FakeWorker;

class TaskPoolTest : public test::CallerTest {
 protected:
  /// A worker that was asked for.
  struct Ask {
    ResourceMap resources;
    PendingActor pending;
  };

  TaskPoolTest() {
    function_.name = "resize";
    function_.id = 9;
  }
  ~TaskPoolTest() override {
    if (pool_) pool_->close();
    for (Ask& ask : take_asks()) ask.pending.created->fail(cancelled("the test is over"));
  }

  void make_pool(TaskPoolOptions options = {.idle_max = std::chrono::hours(1)}) {
    TaskPool::WorkerSource workers;
    workers.ask = [this](const ResourceMap& resources,
                         std::chrono::milliseconds) -> Result<PendingActor> {
      std::lock_guard lock(mutex_);
      if (!refusal_.ok()) return refusal_;
      PendingActor pending{ActorId::random(), std::make_shared<ObjectState>(nullptr),
                           std::make_shared<ActorAddress>()};
      asks_.push_back({resources, pending});
      return pending;
    };
    workers.give_back = [this](ActorId actor) {
      std::lock_guard lock(mutex_);
      given_back_.push_back(actor);
    };
    pool_ = std::make_shared<TaskPool>(
        context_, [] { return ActorInstance{}; }, std::move(workers), options);
  }
  ObjectStatePtr submit(const TaskOptions& options = {}) {
    return pool_->submit(&function_, {}, options);
  }
  std::vector<Ask> take_asks() {
    std::lock_guard lock(mutex_);
    return std::exchange(asks_, {});
  }
  /// Waits for the next worker that is asked for.
  Ask next_ask() {
    EXPECT_TRUE(support::eventually([&] {
      std::lock_guard lock(mutex_);
      return !asks_.empty();
    }));
    std::lock_guard lock(mutex_);
    Ask ask = asks_.front();
    asks_.erase(asks_.begin());
    return ask;
  }
  /// A worker for it. Returns the worker's address.
  ActorAddress grant(const Ask& ask) {
    ActorAddress worker = address();
    worker.actor = ask.pending.actor;
    worker.class_name = TaskRunner::kClassName;
    *ask.pending.address = worker;
    ask.pending.created->fulfil({});
    return worker;
  }
  bool is_given_back(ActorId actor) {
    return support::eventually([&] {
      std::lock_guard lock(mutex_);
      return std::ranges::find(given_back_, actor) != given_back_.end();
    });
  }
  std::size_t asked() {
    std::lock_guard lock(mutex_);
    return asks_.size();
  }

  MethodEntry function_;
  std::shared_ptr<TaskPool> pool_;

  std::mutex mutex_;  // guards what follows
  std::vector<Ask> asks_;
  std::vector<ActorId> given_back_;
  Status refusal_;  // of workers
};

TEST_F(TaskPoolTest, ATaskRunsOnAWorkerThatHasItsResources) {
  make_pool();
  ObjectStatePtr result = submit({.cpus = 2, .gpus = 1, .resources = {{"disk", 3}}});
  const Ask ask = next_ask();
  EXPECT_EQ(ask.resources, (ResourceMap{{"CPU", 2}, {"GPU", 1}, {"disk", 3}}));
  const ActorAddress worker = grant(ask);
  ASSERT_TRUE(has_calls(0, 1));
  with_worker(0, [&](FakeWorker& there) {
    EXPECT_EQ(there.calls[0].request.actor, worker.actor);
    EXPECT_EQ(there.calls[0].request.method, 9u);
    there.answer(0, 12);
  });
  EXPECT_EQ(value_of(result), 12);
}

TEST_F(TaskPoolTest, TheNextTaskTakesTheWorkerThatIsThere) {
  make_pool();
  ObjectStatePtr first = submit();
  grant(next_ask());
  ASSERT_TRUE(has_calls(0, 1));
  with_worker(0, [](FakeWorker& there) { there.answer(0, 1); });
  EXPECT_EQ(value_of(first), 1);
  ObjectStatePtr second = submit();
  ASSERT_TRUE(has_calls(0, 2));
  EXPECT_EQ(asked(), 0u);
  with_worker(0, [](FakeWorker& there) { there.answer(1, 2); });
  EXPECT_EQ(value_of(second), 2);
}

TEST_F(TaskPoolTest, TasksOfOtherResourcesHaveOtherWorkers) {
  make_pool();
  ObjectStatePtr small = submit({.cpus = 1});
  const Ask first = next_ask();
  ObjectStatePtr large = submit({.cpus = 4});
  const Ask second = next_ask();
  EXPECT_EQ(second.resources, (ResourceMap{{"CPU", 4}}));
  grant(second);
  ASSERT_TRUE(has_calls(0, 1));
  with_worker(0, [](FakeWorker& there) { there.answer(0, 4); });
  EXPECT_EQ(value_of(large), 4);
  EXPECT_FALSE(small->is_settled());
  grant(first);
  ASSERT_TRUE(has_calls(1, 1));
  with_worker(1, [](FakeWorker& there) { there.answer(0, 1); });
  EXPECT_EQ(value_of(small), 1);
}

TEST_F(TaskPoolTest, WhatCanNeverBeHadFailsTheTask) {
  make_pool();
  refusal_ = invalid_argument("no such resource");
  EXPECT_EQ(failure_of(submit()), invalid_argument("task resize: no such resource"));
}

TEST_F(TaskPoolTest, WhatIsNotThereNowIsAskedForAgain) {
  make_pool();
  ObjectStatePtr result = submit();
  next_ask().pending.created->fail(resource_exhausted("no node has 1 CPU"));
  grant(next_ask());
  ASSERT_TRUE(has_calls(0, 1));
  with_worker(0, [](FakeWorker& there) { there.answer(0, 1); });
  EXPECT_EQ(value_of(result), 1);
}

TEST_F(TaskPoolTest, ATaskWithoutAWorkerEndsInTimeWithWhatWasMissing) {
  make_pool();
  refusal_ = resource_exhausted("no node has 1 CPU");
  ObjectStatePtr hurried = submit({.timeout = std::chrono::milliseconds(20)});
  EXPECT_EQ(failure_of(hurried), resource_exhausted("task resize: no node has 1 CPU"));
}

TEST_F(TaskPoolTest, ATaskThatGetsNoWorkerEndsAtItsDeadline) {
  make_pool();
  ObjectStatePtr waits = submit({.timeout = std::chrono::milliseconds(20)});
  EXPECT_EQ(failure_of(waits).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_NE(waits->failure().message().find("(of 20 ms)"), std::string::npos);
}

TEST_F(TaskPoolTest, ATaskWhoseWorkerDiedRunsOnAnother) {
  make_pool();
  ObjectStatePtr result = submit({.max_retries = 1});
  grant(next_ask());
  ASSERT_TRUE(has_calls(0, 1));
  with_worker(0, [](FakeWorker& there) { there.die(); });
  answer_state(1, state_of(ActorPhase::kDead, 1));
  grant(next_ask());
  ASSERT_TRUE(has_calls(1, 1));
  EXPECT_FALSE(result->is_settled());
  with_worker(1, [](FakeWorker& there) { there.answer(0, 6); });
  EXPECT_EQ(value_of(result), 6);
}

TEST_F(TaskPoolTest, ATaskThatMayNotRunAgainFailsWithItsWorker) {
  make_pool();
  ObjectStatePtr result = submit({.max_retries = 0});
  grant(next_ask());
  ASSERT_TRUE(has_calls(0, 1));
  with_worker(0, [](FakeWorker& there) { there.die(); });
  answer_state(1, state_of(ActorPhase::kDead, 1));
  EXPECT_EQ(failure_of(result).code(), ErrorCode::kActorDied);
  EXPECT_EQ(asked(), 0u);
}

TEST_F(TaskPoolTest, AFailureOfTheFunctionIsRunAgainOnlyIfAskedTo) {
  make_pool();
  ObjectStatePtr once = submit();
  grant(next_ask());
  ASSERT_TRUE(has_calls(0, 1));
  with_worker(0, [](FakeWorker& there) { there.refuse(0, task_failed("bad image")); });
  EXPECT_EQ(failure_of(once).code(), ErrorCode::kTaskFailed);
  ObjectStatePtr again = submit({.max_retries = 1, .retry_failures = true});
  ASSERT_TRUE(has_calls(0, 2));
  with_worker(0, [](FakeWorker& there) { there.refuse(1, task_failed("bad image")); });
  ASSERT_TRUE(has_calls(0, 3));
  with_worker(0, [](FakeWorker& there) { there.answer(2, 1); });
  EXPECT_EQ(value_of(again), 1);
}

TEST_F(TaskPoolTest, AWorkerThatIsIdleIsGivenBack) {
  make_pool({.idle_max = std::chrono::milliseconds(1)});
  ObjectStatePtr result = submit();
  const ActorAddress worker = grant(next_ask());
  ASSERT_TRUE(has_calls(0, 1));
  {
    std::lock_guard lock(mutex_);
    EXPECT_TRUE(given_back_.empty()) << "it runs a task";
  }
  with_worker(0, [](FakeWorker& there) { there.answer(0, 1); });
  EXPECT_TRUE(is_given_back(worker.actor));
  ObjectStatePtr next = submit();
  grant(next_ask());
  ASSERT_TRUE(has_calls(1, 1));
  with_worker(1, [](FakeWorker& there) { there.answer(0, 2); });
  EXPECT_EQ(value_of(next), 2);
}

TEST_F(TaskPoolTest, AWorkerOfANodeThatLeavesFinishesItsTaskAndIsGivenBack) {
  make_pool();
  ObjectStatePtr running = submit();
  const ActorAddress worker = grant(next_ask());
  ASSERT_TRUE(has_calls(0, 1));
  pool_->on_node_drains(NodeId::random());
  pool_->on_node_drains(worker.node);
  ObjectStatePtr next = submit();
  const Ask other = next_ask();
  {
    std::lock_guard lock(mutex_);
    EXPECT_TRUE(given_back_.empty()) << "it runs a task";
  }
  with_worker(0, [](FakeWorker& there) { there.answer(0, 1); });
  EXPECT_EQ(value_of(running), 1);
  EXPECT_TRUE(is_given_back(worker.actor));
  grant(other);
  ASSERT_TRUE(has_calls(1, 1));
  with_worker(1, [](FakeWorker& there) { there.answer(0, 2); });
  EXPECT_EQ(value_of(next), 2);
}

TEST_F(TaskPoolTest, ATaskIsCancelledBeforeItRunsOrOnItsWorker) {
  make_pool();
  ObjectStatePtr waits = submit();
  const Ask ask = next_ask();
  auto producer = waits->producer();
  ASSERT_NE(producer, nullptr);
  EXPECT_TRUE(producer->cancel(producer, CancelMode::kCooperative).ok());
  EXPECT_EQ(failure_of(waits).code(), ErrorCode::kCancelled);
  ObjectStatePtr runs = submit();
  grant(ask);
  ASSERT_TRUE(has_calls(0, 1));
  producer = runs->producer();
  EXPECT_TRUE(producer->cancel(producer, CancelMode::kCooperative).ok());
  EXPECT_TRUE(comes_true(
      loop_, [&] { return node_.workers[0]->has_notice(CallNotice::Kind::kCancel, 1); }));
  with_worker(0, [](FakeWorker& there) { there.refuse(0, cancelled("as asked")); });
  EXPECT_EQ(failure_of(runs).code(), ErrorCode::kCancelled);
}

TEST_F(TaskPoolTest, ATaskWaitsForItsArgumentWithoutHoldingUpOthers) {
  make_pool();
  auto late = std::make_shared<ObjectState>(nullptr);
  ObjectValue arguments;
  arguments.refs.push_back(late);
  ObjectStatePtr blocked = pool_->submit(&function_, arguments, {});
  EXPECT_EQ(asked(), 0u) << "no worker stands idle for it";
  ObjectStatePtr other = submit();
  grant(next_ask());
  ASSERT_TRUE(has_calls(0, 1));
  with_worker(0, [](FakeWorker& there) { there.answer(0, 1); });
  EXPECT_EQ(value_of(other), 1);
  late->fulfil({});
  ASSERT_TRUE(has_calls(0, 2));
  with_worker(0, [](FakeWorker& there) { there.answer(1, 2); });
  EXPECT_EQ(value_of(blocked), 2);
}

TEST_F(TaskPoolTest, NothingRunsOnceItIsClosed) {
  make_pool();
  ObjectStatePtr waits = submit();
  const Ask ask = next_ask();
  pool_->close();
  EXPECT_EQ(failure_of(waits).code(), ErrorCode::kCancelled);
  EXPECT_EQ(failure_of(submit()).code(), ErrorCode::kCancelled);
  grant(ask);
  run_on(loop_, [&] { EXPECT_EQ(node_.dials, 0); });
}

}  // namespace
}  // namespace runtime
