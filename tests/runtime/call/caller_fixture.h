// The callers' side of actors without a cluster. The node and the process's objects are fakes, and
// a stand-in takes the place of the worker at the other end of each connection.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/call/actor_client.h"
#include "runtime/call/actor_clients.h"
#include "runtime/call/blocked_calls.h"
#include "runtime/call/call_wire.h"
#include "runtime/call/caller_context.h"
#include "runtime/call/object_table.h"
#include "runtime/call/registry.h"
#include "runtime/runtime_templates.h"
#include "runtime/transport/endpoint.h"
#include "tests/runtime/call/fake_objects.h"
#include "tests/runtime/transport/channel_pair.h"

namespace runtime::test {

/// What a worker gets, and its answers. On the loop.
class FakeWorker {
 public:
  struct Call {
    CallRequest request;
    ObjectValue arguments;
    Message frame;
  };

  FakeWorker(EventLoop& loop, Endpoint endpoint) : pair(loop), dialled(std::move(endpoint)) {
    pair.far->set_handler([this](const std::shared_ptr<Channel>&, Message message) {
      if (message.kind == FrameKind::kCancel) {
        Result<CallNotice> notice = decode_notice(message.meta);
        EXPECT_TRUE(notice.ok());
        if (notice.ok()) notices.push_back(*notice);
        return;
      }
      Call call;
      const Status decoded = decode_call(
          message.meta, message.payload.first(), nullptr,
          [](const CallRequest&) { return nullptr; }, &call.request, &call.arguments);
      EXPECT_TRUE(decoded.ok()) << decoded.message();
      call.frame = std::move(message);
      calls.push_back(std::move(call));
    });
  }
  FakeWorker(const FakeWorker&) = delete;
  FakeWorker& operator=(const FakeWorker&) = delete;

  void answer(std::size_t at, int value) {
    ObjectValue result;
    Encoder encoder;
    encode_value(encoder, value);
    result.bytes = encoder.to_buffer();
    reply(at, {}, result);
  }
  void refuse(std::size_t at, Status why, bool gone = false) {
    reply(at, {.status = std::move(why), .gone = gone}, {});
  }
  /// As a process that ends.
  void die() { pair.far->close(unavailable("the process has ended")); }
  bool has_notice(CallNotice::Kind kind, std::uint64_t sequence) const {
    for (const CallNotice& notice : notices)
      if (notice.kind == kind && notice.sequence == sequence) return true;
    return false;
  }

  ChannelPair pair;
  const Endpoint dialled;
  std::vector<Call> calls;
  std::vector<CallNotice> notices;

 private:
  void reply(std::size_t at, const CallReply& reply, const ObjectValue& value) {
    Result<Buffer> meta = encode_reply(reply, value);
    ASSERT_TRUE(meta.ok());
    ASSERT_TRUE(
        pair.far->send(reply_to(calls.at(at).frame, *std::move(meta), Payload(value.bytes))).ok());
  }
};

/// Connects callers to stand-ins, and notes what is asked of the head. Read it on the loop.
class FakeCallerNode final : public CallerNode {
 public:
  explicit FakeCallerNode(EventLoop& loop) : loop_(loop) {}

  NodeId node_id() const override { return here; }
  std::string node_address() const override { return "10.0.0.1:1"; }
  void connect(const Endpoint& worker,
               UniqueFunction<void(Result<std::shared_ptr<Channel>>)> done) override {
    loop_.post([this, worker, done = std::move(done)]() mutable {
      ++dials;
      if (refused_dials > 0) {
        --refused_dials;
        return done(unavailable("nothing listens"));
      }
      if (!reachable)
        return waiting.push_back(
            [this, worker, done = std::move(done)]() mutable { accept(worker, done); });
      accept(worker, done);
    });
  }
  void state(ActorId actor, std::uint64_t incarnation, Deadline,
             Callback<ActorState> done) override {
    loop_.post([this, actor, incarnation, done = std::move(done)]() mutable {
      states.push_back({actor, incarnation, std::move(done)});
    });
  }
  void resolve(ActorId actor, Deadline, Callback<ActorAddress> done) override {
    loop_.post([this, actor, done = std::move(done)]() mutable {
      addresses.push_back({actor, std::move(done)});
    });
  }
  void tell_builder(ActorId, const std::vector<WaitStep>&) override {}

  void forget() {
    waiting.clear();
    states.clear();
    addresses.clear();
    workers.clear();
  }

  struct StateAsked {
    ActorId actor;
    std::uint64_t incarnation;
    Callback<ActorState> answer;
  };
  struct AddressAsked {
    ActorId actor;
    Callback<ActorAddress> answer;
  };

  const NodeId here = NodeId::random();
  int dials = 0;
  int refused_dials = 0;  // of those to come
  bool reachable = true;  // else connections wait in `waiting`
  std::vector<UniqueFunction<void()>> waiting;
  std::vector<std::unique_ptr<FakeWorker>> workers;
  std::vector<StateAsked> states;
  std::vector<AddressAsked> addresses;

 private:
  template <class Done>
  void accept(const Endpoint& worker, Done& done) {
    workers.push_back(std::make_unique<FakeWorker>(loop_, worker));
    done(workers.back()->pair.near);
  }

  EventLoop& loop_;
};

struct Adder {
  int add(int number) { return number; }
  int unregistered(int number) { return number; }
};

class CallerTest : public ::testing::Test {
 protected:
  CallerTest() : node_(loop_) {
    ActorClass& known = registry_.add("Adder", typeid(Adder));
    known.add(runtime_detail::method_entry<Adder>(method("add", &Adder::add)));
    registry_.seal();
    context_ = std::make_shared<const CallerContext>(
        CallerContext{loop_, registry_, 77, nullptr, shut_down_, blocked_calls_, object_table_,
                      clients_, objects_, node_});
  }
  ~CallerTest() override {
    for (const auto& client : clients_.clients()) client->close(cancelled("the test is over"));
    run_on(loop_, [&] {
      for (auto& worker : node_.workers) worker->pair.close();
    });
    run_on(loop_, [&] { node_.forget(); });  // with what that has caused
    EXPECT_TRUE(comes_true(loop_, [&] { return clients_.clients().empty(); }))
        << "a client that no handle refers to stays";
  }

  ActorAddress address(std::uint64_t incarnation = 1) const {
    ActorAddress address;
    address.actor = actor_;
    address.worker = WorkerId::random();
    address.node = node_.here;
    address.class_name = "Adder";
    address.unix_path = "/run/worker";
    address.node_address = "10.0.0.1:1";
    address.incarnation = incarnation;
    address.pid = 42;
    return address;
  }
  std::shared_ptr<ActorClient> client(const ActorAddress& address) {
    return clients_.client_for(context_, address);
  }
  static ActorState state_of(ActorPhase phase, std::uint64_t incarnation,
                             std::uint32_t restarts = 0) {
    ActorState state;
    state.phase = phase;
    state.incarnation = incarnation;
    state.restarts = restarts;
    return state;
  }

  /// The call with one argument: a number, or a reference to one.
  template <class A>
  static ObjectStatePtr add(ActorClient& client, const A& argument,
                            std::chrono::milliseconds timeout = std::chrono::seconds(60),
                            std::int32_t retries = 0) {
    return with_arguments<std::tuple<int>>(
        [&](Encoder& encoder) {
          return client.call(typeid(Adder), MethodKey::of(&Adder::add), encoder, timeout, retries);
        },
        argument);
  }
  bool settles(const ObjectStatePtr& object) {
    return support::eventually([&] { return object->is_settled(); });
  }
  /// The value of a call that is to succeed.
  int value_of(const ObjectStatePtr& object) {
    EXPECT_TRUE(settles(object));
    EXPECT_TRUE(object->failure().ok()) << object->failure().to_string();
    if (!object->is_settled() || !object->failure().ok()) return -1;
    return *fetch<int>(*object, Deadline::max());
  }
  /// Why a call has failed.
  Status failure_of(const ObjectStatePtr& object) {
    EXPECT_TRUE(settles(object));
    return object->is_settled() ? object->failure() : Status();
  }
  /// Waits until the worker of that connection has this many calls.
  bool has_calls(std::size_t connection, std::size_t calls) {
    return comes_true(loop_, [&] {
      return node_.workers.size() > connection && node_.workers[connection]->calls.size() >= calls;
    });
  }
  template <class Action>
  void with_worker(std::size_t connection, Action action) {
    run_on(loop_, [&] { action(*node_.workers.at(connection)); });
  }
  /// Waits until the head is asked so often what became of an actor, and answers the last time.
  void answer_state(std::size_t times, const Result<ActorState>& state) {
    ASSERT_TRUE(comes_true(loop_, [&] { return node_.states.size() >= times; }));
    run_on(loop_, [&] { std::exchange(node_.states[times - 1].answer, nullptr)(state); });
  }
  void answer_address(std::size_t times, const Result<ActorAddress>& found) {
    ASSERT_TRUE(comes_true(loop_, [&] { return node_.addresses.size() >= times; }));
    run_on(loop_, [&] { std::exchange(node_.addresses[times - 1].answer, nullptr)(found); });
  }

  const ActorId actor_ = ActorId::random();
  EventLoop loop_;
  Registry registry_;
  std::atomic<bool> shut_down_ = false;
  BlockedCalls blocked_calls_{77};
  ObjectTable object_table_;
  ActorClients clients_;
  FakeCallObjects objects_;
  FakeCallerNode node_;
  CallerContextPtr context_;
};

}  // namespace runtime::test
