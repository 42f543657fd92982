#include "runtime/worker/coroutine_call.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "runtime/call/awaited_call.h"
#include "runtime/coroutine.h"
#include "runtime/runtime_templates.h"
#include "tests/runtime/call/fake_objects.h"
#include "tests/support/on_loop.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

/// Awaits an object of the test.
class Router {
 public:
  explicit Router(ObjectStatePtr awaited) : awaited_(std::move(awaited)) {}

  asio::awaitable<Result<int>> add(int number) {
    ++calls;
    Result<int> sum = number + 1;
    co_return sum;
  }
  asio::awaitable<Status> wait(int milliseconds) {
    ++calls;
    auto waiting = coroutine_detail::settled(
        awaited_, milliseconds > 0 ? deadline_after(std::chrono::milliseconds(milliseconds))
                                   : Deadline::max());
    Status status = co_await std::move(waiting);
    co_return status;
  }
  asio::awaitable<void> fail(int) {
    ++calls;
    throw std::runtime_error("the router fell");
    co_return;
  }

  int calls = 0;  // on the loop

 private:
  const ObjectStatePtr awaited_;
};

/// An actor whose turns are the loop's.
class LoopHost final : public CoroutineHost {
 public:
  explicit LoopHost(EventLoop& loop) : loop_(loop) {}
  void run_in_turn(UniqueFunction<void()> task) override { loop_.post(std::move(task)); }
  void end_coroutine(CoroutineCall& call, Status status) override {
    if (status.ok()) output = call.output.encoder.to_buffer();
    ended = std::move(status);
  }
  void end_fetch(CoroutineCall& call) override {
    EXPECT_TRUE(std::exchange(call.fetches, false));
    ++fetched;
  }

  std::optional<Status> ended;
  Buffer output;
  int fetched = 0;

 private:
  EventLoop& loop_;
};

/// A call that the object's maker waits for.
struct AwaitedLink final : AwaitedCall {
  std::string describe() const override { return "Link 1: pass"; }
  bool has_own_limit() const override { return false; }
  void tell(const std::vector<WaitStep>& waits) const override { told.push_back(waits); }
  void on_cycle(const std::shared_ptr<Producer>&, const std::string& text, bool) override {
    cycle = text;
  }
  Status cancel(const std::shared_ptr<Producer>&, CancelMode) override { return {}; }

  mutable std::vector<std::vector<WaitStep>> told;  // on the loop
  std::string cycle;
};

class CoroutineCallTest : public ::testing::Test {
 protected:
  ~CoroutineCallTest() override {
    run_on(loop_, [&] { call_.reset(); });
    run_on(loop_, [] {});
  }

  static Buffer arguments_of(int number) {
    return with_arguments<std::tuple<int>>([](Encoder& encoder) { return encoder.to_buffer(); },
                                           number);
  }
  template <class M>
  void start(M method_pointer, ObjectValue arguments) {
    method_ = runtime_detail::method_entry<Router>(method("route", method_pointer));
    const CallContext context(stop_.get_token(), Deadline::max());
    call_ = std::make_shared<CoroutineCall>(router_, method_.key, arguments.refs, context);
    call_->host = host_;
    call_->fetches = arguments.stored != nullptr;
    call_->job = std::make_unique<ActorJob>();
    call_->job->method = &method_;
    call_->job->arguments = std::move(arguments);
    run_on(loop_, [&] { start_coroutine(call_, served(), objects_.get()); });
  }
  template <class M>
  void start(M method_pointer, int number) {
    ObjectValue arguments;
    arguments.bytes = arguments_of(number);
    start(method_pointer, std::move(arguments));
  }
  ServedCall served() const { return {{actor_, nullptr, 7}, &class_name_, &method_.name}; }
  bool has_begun() {
    return comes_true(loop_, [&] { return router_->calls == 1; });
  }
  Status ended() {
    EXPECT_TRUE(comes_true(loop_, [&] { return host_->ended.has_value(); }));
    return on_loop(loop_, [&] { return host_->ended.value_or(internal_error("it goes on")); });
  }
  int result() {
    return on_loop(loop_, [&] {
      Decoder decoder(host_->output);
      return *decode_all<int>(decoder);
    });
  }

  EventLoop loop_;
  test::FakeObjectContext objects_{loop_};
  const ActorId actor_ = ActorId::random();
  const std::string class_name_ = "Router";
  MethodEntry method_;
  const ObjectStatePtr object_ = std::make_shared<ObjectState>(objects_.get());
  const std::shared_ptr<Router> router_ = std::make_shared<Router>(object_);
  const std::shared_ptr<LoopHost> host_ = std::make_shared<LoopHost>(loop_);
  std::stop_source stop_;
  std::shared_ptr<CoroutineCall> call_;
};

TEST_F(CoroutineCallTest, EndsWithItsResult) {
  start(&Router::add, 4);
  EXPECT_TRUE(ended().ok()) << ended().to_string();
  EXPECT_EQ(result(), 5);
  EXPECT_EQ(host_->fetched, 0);
}

TEST_F(CoroutineCallTest, ArgumentsInAStoreAreFetchedBeforeItBegins) {
  ObjectValue arguments;
  test::FakeReferences& references = objects_.references;
  arguments.stored =
      references.borrow(references.store->put(std::string(arguments_of(4).text())), false);
  start(&Router::add, std::move(arguments));
  EXPECT_TRUE(ended().ok()) << ended().to_string();
  EXPECT_EQ(result(), 5);
  EXPECT_EQ(host_->fetched, 1);
}

TEST_F(CoroutineCallTest, ArgumentsThatAreLostFailIt) {
  ObjectValue arguments;
  arguments.stored = objects_.references.borrow(test::some_location(), false);
  start(&Router::add, std::move(arguments));
  EXPECT_EQ(ended().code(), ErrorCode::kObjectLost);
  EXPECT_TRUE(ended().message().starts_with("arguments: ")) << ended().message();
  EXPECT_EQ(router_->calls, 0);
  EXPECT_EQ(host_->fetched, 1) << "others of its line may go";
}

TEST_F(CoroutineCallTest, MalformedArgumentsFailIt) {
  ObjectValue arguments;
  arguments.bytes = Buffer::copy_of("x");
  start(&Router::add, std::move(arguments));
  EXPECT_EQ(ended().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(router_->calls, 0);
}

TEST_F(CoroutineCallTest, AnExceptionIsItsFailure) {
  start(&Router::fail, 0);
  EXPECT_EQ(ended().code(), ErrorCode::kTaskFailed);
  EXPECT_NE(ended().message().find("the router fell"), std::string::npos) << ended().message();
}

TEST_F(CoroutineCallTest, ContinuesWhenWhatItAwaitsIsThere) {
  start(&Router::wait, 0);
  ASSERT_TRUE(has_begun());
  run_on(loop_, [&] { EXPECT_FALSE(host_->ended); });
  object_->fulfil({});
  EXPECT_TRUE(ended().ok()) << ended().to_string();
}

TEST_F(CoroutineCallTest, DoesNotAwaitBeyondTheDeadline) {
  start(&Router::wait, 5);
  EXPECT_EQ(ended(), deadline_exceeded("the object was not there in time"));
}

TEST_F(CoroutineCallTest, ACancellationEndsWhatItAwaits) {
  start(&Router::wait, 0);
  ASSERT_TRUE(has_begun());
  stop_.request_stop();
  EXPECT_EQ(ended().code(), ErrorCode::kCancelled);
}

// A wait is announced once it has lasted BlockedCalls::kPeriod.
TEST_F(CoroutineCallTest, ItsWaitIsPartOfTheSearchForCycles) {
  const auto link = std::make_shared<AwaitedLink>();
  object_->set_producer(link);
  start(&Router::wait, 0);
  ASSERT_TRUE(comes_true(loop_, [&] { return !link->told.empty(); }));
  run_on(loop_, [&] {
    const WaitStep step = link->told.back().back();
    EXPECT_EQ(step.waiting, served().describe());
    EXPECT_EQ(step.awaited, "Link 1: pass");
    EXPECT_FALSE(step.bounded);
    objects_.blocked_calls.on_waits(served().key,
                                    {step, {1, 1, "Link 1: pass", served().describe(), false}});
    EXPECT_NE(link->cycle, "") << "the chain has come back";
    link->cycle.clear();
  });
  object_->fulfil({});
  EXPECT_TRUE(ended().ok());
  run_on(loop_, [&] {
    const WaitStep step = link->told.back().back();
    objects_.blocked_calls.on_waits(served().key,
                                    {step, {1, 1, "Link 1: pass", served().describe(), false}});
    EXPECT_EQ(link->cycle, "") << "the wait is over";
  });
}

}  // namespace
}  // namespace runtime
