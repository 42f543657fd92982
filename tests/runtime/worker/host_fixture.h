// One actor in this process, without a cluster: a real executor and real channels, and fakes of
// what makes the actor and of its callers.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <typeindex>
#include <utility>
#include <vector>

#include "runtime/call/call_wire.h"
#include "runtime/call/invoke.h"
#include "runtime/call/task.h"
#include "runtime/runtime_templates.h"
#include "runtime/worker/actor_executor.h"
#include "runtime/worker/actor_host.h"
#include "tests/runtime/call/fake_objects.h"
#include "tests/runtime/transport/channel_pair.h"

namespace runtime::test {

/// What a test sees of an actor, and how it holds the actor's methods up.
class Stage {
 public:
  void enter(int number) {
    std::lock_guard lock(mutex_);
    entered_.push_back(number);
    changed_.notify_all();
  }
  void pass(int number) {
    enter(number);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  /// Waits until this many calls have begun.
  void await(std::size_t calls) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30),
                                  [&] { return entered_.size() >= calls; }));
  }
  /// The calls that have begun, by what they were called with.
  std::vector<int> entered() const {
    std::lock_guard lock(mutex_);
    return entered_;
  }

  Status refusal;               // of the constructor
  std::atomic<int> actors = 0;  // that live
  std::atomic<int> made_ever = 0;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> entered_;
  bool open_ = false;
};

class Performer {
 public:
  explicit Performer(Stage& stage) : stage_(stage) {
    ++stage_.actors;
    ++stage_.made_ever;
  }
  Performer(const Performer&) = delete;
  Performer& operator=(const Performer&) = delete;
  ~Performer() { --stage_.actors; }

  int add(int number) {
    stage_.enter(number);
    return total_ += number;
  }
  int hold(int number) {
    stage_.pass(number);
    return total_ += number;
  }
  /// As hold(), without what several threads would share.
  int pass(int number) {
    stage_.pass(number);
    return number;
  }
  int unregistered(int number) { return number; }
  int fail(int number) {
    stage_.enter(number);
    throw std::runtime_error("the performer fell");
  }
  Status await_cancel(const CallContext& call, int number) {
    std::promise<void> told;
    const std::stop_callback hear(call.stop_token(), [&] { told.set_value(); });
    stage_.enter(number);
    told.get_future().wait();
    return call.status();
  }

 private:
  Stage& stage_;
  int total_ = 0;
};

/// What the tests' actors are made from: nothing.
inline constexpr std::string_view kNoArguments = "()";

/// The specification of an actor that is made of nothing.
inline ActorSpec spec_of(ActorId actor, std::string class_name,
                         const ExecutionOptions& execution = {}) {
  ActorSpec spec;
  spec.actor = actor;
  spec.class_name = std::move(class_name);
  auto constructor = encode_constructor(std::string(kNoArguments), ObjectValue{}, execution);
  EXPECT_TRUE(constructor.ok());
  spec.constructor_args = *std::move(constructor);
  return spec;
}
inline ActorSpec performer_spec(ActorId actor, const ExecutionOptions& execution = {}) {
  return spec_of(actor, "Performer", execution);
}

/// The process that actors run in, as the test says. Any thread.
class FakeHostProcess final : public HostProcess, public StateKeeper {
 public:
  std::optional<DrainNotice> drain_notice() const override {
    std::lock_guard lock(mutex_);
    return notice_;
  }
  void set_resident(ActorInstance actor) override {
    std::lock_guard lock(mutex_);
    resident_ = actor;
  }
  void park(ActorId actor) override {
    if (on_park) on_park(actor);
  }
  Status keep_state(ActorInstance actor, std::string state, Deadline) override {
    std::lock_guard lock(mutex_);
    saved_.emplace_back(actor, std::move(state));
    return {};
  }

  void drain(DrainNotice notice) {
    std::lock_guard lock(mutex_);
    notice_ = std::move(notice);
  }
  ActorInstance resident() const {
    std::lock_guard lock(mutex_);
    return resident_;
  }
  std::vector<std::pair<ActorInstance, std::string>> saved() const {
    std::lock_guard lock(mutex_);
    return saved_;
  }

  std::function<void(ActorId)> on_park;  // before there are actors

 private:
  mutable std::mutex mutex_;
  std::optional<DrainNotice> notice_;
  ActorInstance resident_;
  std::vector<std::pair<ActorInstance, std::string>> saved_;
};

/// What a caller gets.
struct CallAnswer {
  Status status;
  bool gone = false;
  int value = 0;
};
using Pending = std::future<Result<Message>>;

class WorkerPartTest : public ::testing::Test {
 protected:
  WorkerPartTest() {
    ActorClass& known = registry_.add("Performer", typeid(Performer));
    known.add(runtime_detail::method_entry<Performer>(method("add", &Performer::add)));
    known.add(runtime_detail::method_entry<Performer>(method("hold", &Performer::hold)));
    known.add(runtime_detail::method_entry<Performer>(method("pass", &Performer::pass)));
    known.add(runtime_detail::method_entry<Performer>(method("fail", &Performer::fail)));
    known.add(
        runtime_detail::method_entry<Performer>(method("await_cancel", &Performer::await_cancel)));
    class_ = &known;
    executor_.emplace(loop_);
    caller_.emplace(loop_);
    server_ = std::thread([this] { executor_->run(); });
  }
  ~WorkerPartTest() override {
    stage_.open();
    stop_serving();
    caller_.reset();
    on_loop([] {});  // with what that has caused
  }
  /// No turn runs any more.
  void stop_serving() {
    if (!server_.joinable()) return;
    executor_->stop();
    server_.join();
  }

  /// Makes the test's actors: performers, where it says nothing else.
  virtual Result<std::shared_ptr<void>> make_actor(std::type_index type) {
    EXPECT_EQ(type, std::type_index(typeid(Performer)));
    if (!stage_.refusal.ok()) return stage_.refusal;
    return std::shared_ptr<void>(std::make_shared<Performer>(stage_));
  }
  std::shared_ptr<const HostContext> context(ActorHostOptions options = {}) {
    registry_.seal();
    const auto makers = [this](std::type_index type, std::string_view signature) -> ActorMaker {
      EXPECT_EQ(signature, kNoArguments);
      return [this, type](Decoder&, Deadline) { return make_actor(type); };
    };
    return std::shared_ptr<const HostContext>(new HostContext{
        loop_, registry_, nullptr, objects_.blocked_calls, objects_.shut_down, call_objects_,
        objects_.get(), host_process_, host_process_, *executor_, makers, options});
  }

  /// Sends a call to the far end of `caller`.
  template <class M>
  Pending call(ChannelPair& caller, CallRequest request, M method, int number) {
    const MethodEntry* entry = class_->find(MethodKey::of(method));
    request.method = entry ? entry->id : 1;
    request.deadline_ms = 30'000;
    request.sequence = ++sequence_;
    ObjectValue arguments;
    arguments.bytes = with_arguments<typename MethodTraits<M>::Params>(
        [](Encoder& encoder) { return encoder.to_buffer(); }, number);
    Result<Buffer> meta = encode_call(request, arguments);
    EXPECT_TRUE(meta.ok());
    Message message;
    message.kind = FrameKind::kCall;
    message.meta = *std::move(meta);
    message.payload = arguments.bytes;
    std::promise<Result<Message>> answer;
    Pending pending = answer.get_future();
    caller.near->request(std::move(message), deadline_after(std::chrono::seconds(60)),
                         [answer = std::move(answer)](Result<Message> reply) mutable {
                           answer.set_value(std::move(reply));
                         });
    return pending;
  }
  CallAnswer answer(Pending pending) {
    Result<Message> reply = pending.get();
    if (!reply.ok()) return {reply.status()};
    CallReply decoded;
    ObjectValue value;
    const Status status = decode_reply(
        reply->meta, reply->payload.first(), objects_.get(), [] { return nullptr; }, &decoded,
        &value);
    EXPECT_TRUE(status.ok()) << status.message();
    CallAnswer answer{decoded.status, decoded.gone};
    if (decoded.status.ok() && !value.bytes.bytes().empty()) {
      Decoder decoder(value.bytes);
      answer.value = *decode_all<int>(decoder);
    }
    return answer;
  }
  /// Runs on the loop, and waits for it.
  void on_loop(const std::function<void()>& action) {
    Event done(loop_);
    loop_.post([&] {
      action();
      done.set();
    });
    EXPECT_TRUE(loop_.run_until(done, deadline_after(std::chrono::seconds(30))));
  }

  Stage stage_;
  EventLoop loop_;
  Registry registry_;
  const ActorClass* class_ = nullptr;
  FakeObjectContext objects_{loop_};
  FakeCallObjects call_objects_{objects_.get()};
  FakeHostProcess host_process_;
  std::optional<ActorExecutor> executor_;
  std::optional<ChannelPair> caller_;
  std::thread server_;
  const ActorId actor_ = ActorId::random();
  std::uint64_t sequence_ = 0;
};

}  // namespace runtime::test
