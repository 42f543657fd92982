// Process: the state of a driver or a worker in the cluster. That is its event loop, its connection
// to the node, its object store client, its actor clients. Private to the runtime; users see
// Runtime. Shared by handles and refs, so that these may outlive the Runtime and then fail with
// kCancelled instead of dangling.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/call/actor_clients.h"
#include "runtime/call/actor_scope.h"
#include "runtime/call/blocked_calls.h"
#include "runtime/call/callback_thread.h"
#include "runtime/call/caller_context.h"
#include "runtime/call/countdown.h"
#include "runtime/call/drain_hooks.h"
#include "runtime/call/fwd.h"
#include "runtime/call/node_of_callers.h"
#include "runtime/call/object_context.h"
#include "runtime/call/object_state.h"
#include "runtime/call/pending_actor.h"
#include "runtime/call/query_context.h"
#include "runtime/call/registry.h"
#include "runtime/call/state_hooks.h"
#include "runtime/codec/encoder.h"
#include "runtime/control/membership.h"
#include "runtime/control/node_client.h"
#include "runtime/core/result.h"
#include "runtime/observe/activity_page.h"
#include "runtime/store/object_client.h"
#include "runtime/transport/block_until.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

/// Size: a member for each part of the cluster that a program uses.
class Process final : public std::enable_shared_from_this<Process>,
                      public StateKeeper,
                      private CallObjects,
                      private ReferenceMaker {
 public:
  /// In a fork()ed child of this process it is never destroyed: its destructor would wait for
  /// threads of the parent.
  static std::shared_ptr<Process> make(std::shared_ptr<const Registry> registry);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Takes over the connection to the node. Once, before anything else.
  void attach(std::unique_ptr<NodeClient> node);
  /// Ends all connections; everything outstanding fails. Idempotent; not from a handler.
  void shut_down();
  bool is_shut_down() const { return shut_down_.load(); }

  EventLoop& loop() { return loop_; }
  /// Whether this is a fork()ed child: calls fail with forked_status(). Cost: a load.
  bool is_forked() const { return loop_.is_forked(); }
  NodeClient& node() { return *node_; }
  /// Reports this process's activity to its node; null if the node is on another machine, or in a
  /// simulation.
  const std::shared_ptr<ActivityPage>& activity() const { return activity_; }
  const Registry& registry() const { return *registry_; }
  /// A number in this process's calls: another's may have the same sequence numbers.
  std::uint64_t session() const { return session_; }

  /// What callers of actors need of this process, which it keeps. Once attached.
  CallerContextPtr callers() const { return {shared_from_this(), callers_.get()}; }
  /// The same for its objects, and for the handles in them.
  ObjectContextPtr object_context() const { return {shared_from_this(), &object_context_}; }
  /// The same for watches and other questions to the head. Once attached.
  QueryContextPtr queries() const { return {shared_from_this(), queries_.get()}; }
  std::shared_ptr<ActorClient> client_for(const ActorAddress& address) override {
    return clients_.client_for(callers(), address);
  }
  /// The existing client for the actor; null: none.
  std::shared_ptr<ActorClient> find_client(ActorId actor) const { return clients_.find(actor); }

  Result<ObjectValue> store(Encoder& encoder, Deadline deadline,
                            const std::stop_token& stop = {}) override;
  /// The encoded value as bytes, of whatever size.
  ObjectValue inlined(Encoder& encoder);
  std::shared_ptr<StoredObject> borrow(ObjectLocation location, bool indirect) override;
  void borrow_confirmed(const ObjectLocation& location, Deadline deadline,
                        UniqueFunction<void(Result<std::shared_ptr<StoredObject>>)> done) override;
  void linger(std::vector<ObjectValue> lent) override;
  ObjectClient& objects() { return *objects_; }
  ObjectTable& object_table() { return *object_table_; }
  BlockedCalls& blocked_calls() { return blocked_calls_; }

  /// Requests an actor. The objects in its arguments are kept until the actor is dead.
  PendingActor start_actor(ActorSpec spec, ObjectValue arguments,
                           std::chrono::milliseconds timeout);
  /// Requests the actor of that name, which may still be starting; PendingActor::actor is none.
  PendingActor find_actor(const std::string& class_name, std::string name, std::string name_space,
                          Deadline deadline, bool has_own_limit);
  void on_actor_died(ActorId actor);

  /// A node is about to leave, as NodeClient::set_on_node_drains. On the loop.
  void on_node_drains(NodeId node, const NodeDrain& drain);
  /// Set if this process's own node is about to leave. Any thread.
  std::optional<DrainNotice> drain_notice() const;
  /// Calls `handler` on the loop for each node that is about to leave; for those that already are,
  /// before it returns. Not from within a handler.
  void hear_of_drains(std::function<void(NodeId node)> handler);

  /// Sets the one actor that this process runs, which owns the actors that it spawns; none if it
  /// runs several.
  void set_resident(ActorInstance actor);
  /// The actor on whose behalf the calling thread runs: of its ActorScope, else the process's
  /// resident. None in a driver.
  ActorInstance current_actor() const;
  Status keep_state(ActorInstance actor, std::string state, Deadline deadline) override;

  /// Blocks until `count` of the objects are settled or the deadline passes; with
  /// OnFailure::kReturn also when one has failed.
  void wait(std::span<const ObjectStatePtr> objects, std::size_t count, Deadline deadline,
            OnFailure on_failure = OnFailure::kCount);

  /// Makes an asynchronous request of the node and blocks for its answer: `make(callback)`.
  template <class T>
  Result<T> ask(const std::function<void(NodeClient::Callback<T>)>& make,
                const std::function<void()>& when_slow = {});
  Status ask(const std::function<void(NodeClient::Done)>& make);

 private:
  explicit Process(std::shared_ptr<const Registry> registry);
  ~Process();

  const std::shared_ptr<const Registry> registry_;
  const std::uint64_t session_;
  EventLoop loop_;
  std::unique_ptr<NodeClient> node_;
  std::shared_ptr<ActivityPage> activity_;  // constant after attach()
  std::shared_ptr<ObjectClient> objects_;
  const std::shared_ptr<ObjectTable> object_table_;
  std::atomic<bool> shut_down_{false};
  BlockedCalls blocked_calls_;
  const ObjectContext object_context_;
  ActorClients clients_;
  std::unique_ptr<NodeOfCallers> node_of_callers_;
  // Made by attach(), as is the one before.
  std::unique_ptr<const CallerContext> callers_;
  std::unique_ptr<const QueryContext> queries_;

  ObjectStatePtr pending() override;
  Status decode_reply(const Buffer& meta, Buffer payload,
                      const std::function<std::shared_ptr<const void>()>& make_loan,
                      CallReply* reply, ObjectValue* value) override;
  Result<ObjectValue> decode_stream_item(
      const Buffer& meta, Buffer payload,
      const std::function<std::shared_ptr<const void>(std::uint64_t)>& make_loan) override;
  void remake(const ObjectLocation& lost, const std::string& keeper, Deadline deadline,
              UniqueFunction<void(Result<ObjectLocation>)> done) override {
    objects_->remake(lost, keeper, deadline, std::move(done));
  }
  object_wire::ProcessReport report() const;
  void evacuate(NodeId node, UniqueFunction<void(std::uint64_t failed)> done);
  void show_activity();

  mutable std::mutex mutex_;
  std::uint64_t lingering_ = 0;  // the number of the last
  std::unordered_map<std::uint64_t, std::vector<ObjectValue>> lingering_values_;
  ActorInstance resident_;
  std::optional<DrainNotice> drain_notice_;
  std::vector<std::function<void(NodeId)>> drain_handlers_;
  std::vector<NodeId> draining_;
  CallbackThread callbacks_;
  std::unordered_map<ActorId, std::vector<ObjectStatePtr>> lent_to_constructors_;
};

/// Of an object that this process makes. Null: there is no process.
inline ObjectContextPtr object_context(const std::shared_ptr<Process>& process) {
  return process ? process->object_context() : nullptr;
}

/// How long an operation may take before it is reported.
inline constexpr std::chrono::seconds kSilentWait{2};

/// The deadline, limited to a finite one that the node accepts.
Deadline bounded(Deadline deadline);

template <class T>
Result<T> Process::ask(const std::function<void(NodeClient::Callback<T>)>& make,
                       const std::function<void()>& when_slow) {
  struct Answer {
    explicit Answer(EventLoop& loop) : event(loop) {}
    Event event;
    std::optional<Result<T>> result;
  };
  // Shared with the callback, which may come after a shutdown has ended the wait.
  auto answer = std::make_shared<Answer>(loop_);
  make([answer](Result<T> result) {
    answer->result = std::move(result);
    answer->event.set();
  });
  if (when_slow && !block_until(loop_, answer->event, deadline_after(kSilentWait))) when_slow();
  if (!block_until(loop_, answer->event, Deadline::max()))
    return cancelled("the runtime was stopped");
  return *std::move(answer->result);
}

}  // namespace runtime
