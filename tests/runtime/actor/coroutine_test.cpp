// Coroutine methods: many calls in progress on one thread.
#include "runtime/coroutine.h"

#include <set>

#include "cluster_fixture.h"

namespace runtime::test {

/// Its members have no lock: it is touched by one thread at a time.
class Router {
 public:
  Router(Runtime& runtime, ActorHandle<Patient> backend)
      : runtime_(runtime), backend_(std::move(backend)) {}

  /// Asks the backend, which answers after `ms` with what it is given.
  asio::awaitable<Result<int>> ask(int ms) {
    enter();
    ObjectRef<int> answer = backend_.call(&Patient::block, ms);
    Result<int> value = co_await runtime_.async_get(answer);
    leave();
    co_return value;
  }
  /// Ends when release() is called.
  asio::awaitable<Status> held(const CallContext& call) {
    enter();
    auto executor = co_await asio::this_coro::executor;
    asio::steady_timer timer(executor);
    while (!released_ && !call.cancelled()) {
      timer.expires_after(std::chrono::milliseconds(5));
      co_await timer.async_wait(asio::use_awaitable);
    }
    leave();
    Status status = call.status();
    co_return status;
  }
  asio::awaitable<void> nap(int ms) {
    enter();
    auto executor = co_await asio::this_coro::executor;
    asio::steady_timer timer(executor, std::chrono::milliseconds(ms));
    co_await timer.async_wait(asio::use_awaitable);
    leave();
  }
  asio::awaitable<std::string> fail(const std::string& text) {
    co_await nap(1);
    throw std::runtime_error(text);
  }
  asio::awaitable<Result<std::string>> late(int ms) {
    ObjectRef<int> never = backend_.call(&Patient::block, ms);
    Result<int> value = co_await runtime_.async_get(never, std::chrono::milliseconds(50));
    std::string text = value.status().to_string();
    co_return text;
  }
  void release() { released_ = true; }
  int peak() const { return peak_; }
  int running() const { return running_; }
  std::size_t threads() const { return threads_.size(); }

 private:
  void enter() {
    threads_.insert(std::this_thread::get_id());
    peak_ = std::max(peak_, ++running_);
  }
  void leave() {
    threads_.insert(std::this_thread::get_id());
    --running_;
  }

  Runtime& runtime_;
  ActorHandle<Patient> backend_;
  int running_ = 0, peak_ = 0;
  bool released_ = false;
  std::set<std::thread::id> threads_;
};

void register_coroutine_actors(Runtime& rt) {
  rt.register_actor<Router>(
      "Router", &Router::ask, &Router::held, &Router::nap, &Router::fail, &Router::late,
      &Router::release, method(&Router::peak, {.concurrency_group = "control"}),
      method(&Router::running, {.concurrency_group = "control"}), &Router::threads);
}

namespace {

class CoroutineTest : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    ActorOptions options;
    options.max_concurrency = 4;
    auto made = rt_->spawn<Patient>(options);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    backend_ = *made;
  }
  ActorHandle<Router> router(std::uint32_t max_concurrency) {
    ActorOptions options;
    options.max_concurrency = max_concurrency;
    options.concurrency_groups = {{"control", 1}};
    auto made = rt_->spawn<Router>(options, backend_);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.value_or(ActorHandle<Router>());
  }
  ActorHandle<Patient> backend_;
};

TEST_F(CoroutineTest, CallsAreInProgressTogetherOnOneThreadAtATime) {
  auto actor = router(200);
  std::vector<ObjectRef<void>> naps;
  for (int i = 0; i < 100; ++i) naps.push_back(actor.call(&Router::nap, 200));
  Status status = rt_->objects().gather(naps, 30s);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_GE(get(actor.call(&Router::peak)), 50);
  EXPECT_EQ(get(actor.call(&Router::running)), 0);
  EXPECT_EQ(get(actor.call(&Router::threads)), 1u);
}

TEST_F(CoroutineTest, OneByOneUnlessAskedFor) {
  auto actor = router(1);
  std::vector<ObjectRef<void>> naps;
  for (int i = 0; i < 10; ++i) naps.push_back(actor.call(&Router::nap, 5));
  ASSERT_TRUE(rt_->objects().gather(naps, 30s).ok());
  EXPECT_EQ(get(actor.call(&Router::peak)), 1);
}

TEST_F(CoroutineTest, AwaitsResultsOfOtherActors) {
  auto actor = router(8);
  std::vector<ObjectRef<int>> answers;
  for (int i = 1; i <= 40; ++i) answers.push_back(actor.call(&Router::ask, i));
  auto values = rt_->objects().gather(answers, 30s);
  ASSERT_TRUE(values.ok()) << values.status().to_string();
  for (int i = 0; i < 40; ++i) EXPECT_EQ((*values)[static_cast<std::size_t>(i)], i + 1);
  const int peak = get(actor.call(&Router::peak));
  EXPECT_GE(peak, 2);
  EXPECT_LE(peak, 8);
}

TEST_F(CoroutineTest, PlainMethodsRunWhileCoroutinesWait) {
  auto actor = router(2);
  auto held = actor.call(&Router::held);
  ASSERT_TRUE(eventually([&] { return get(actor.call(&Router::running)) == 1; }));
  EXPECT_FALSE(held.is_ready());
  ASSERT_TRUE(rt_->get(actor.call(&Router::release), 20s).ok());
  Status status = rt_->get(held, 10s);
  EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST_F(CoroutineTest, FailuresTravel) {
  auto actor = router(2);
  expect_failure(rt_->get(actor.call(&Router::fail, "out of luck"), 10s).status(),
                 ErrorCode::kTaskFailed, {"Router", "out of luck"});
  EXPECT_NE(get(actor.call(&Router::late, 1000)).find("deadline exceeded"), std::string::npos);
}

TEST_F(CoroutineTest, CancellingEndsWhatACallAwaits) {
  auto actor = router(4);
  auto asks = actor.call(&Router::ask, 30'000);
  auto naps = actor.call(&Router::nap, 30'000);
  auto held = actor.call(&Router::held);
  ASSERT_TRUE(eventually([&] { return get(actor.call(&Router::running)) == 3; }));
  ASSERT_TRUE(rt_->cancel(asks).ok());
  ASSERT_TRUE(rt_->cancel(naps).ok());
  ASSERT_TRUE(rt_->cancel(held).ok());
  EXPECT_EQ(rt_->get(asks, 20s).status().code(), ErrorCode::kCancelled);
  EXPECT_EQ(rt_->get(naps, 20s).code(), ErrorCode::kCancelled);
  EXPECT_EQ(rt_->get(held, 20s).code(), ErrorCode::kCancelled);
  EXPECT_TRUE(rt_->get(actor.call(&Router::nap, 1), 10s).ok()) << "its places are free again";
}

TEST_F(CoroutineTest, AnActorEndsWithCallsInProgress) {
  auto actor = router(4);
  auto asks = actor.call(&Router::ask, 30'000);
  auto held = actor.call(&Router::held);
  ASSERT_TRUE(eventually([&] { return get(actor.call(&Router::running)) == 2; }));
  ASSERT_TRUE(rt_->kill(actor).ok());
  EXPECT_EQ(rt_->get(asks, 20s).status().code(), ErrorCode::kActorDied);
  EXPECT_EQ(rt_->get(held, 20s).code(), ErrorCode::kActorDied);
}

}  // namespace
}  // namespace runtime::test
