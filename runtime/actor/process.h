// Process: what a driver or a worker has of the cluster: its event loop, its node, its part of the object store, its callers' sides of actors.
// Private to the runtime; users see Runtime. Shared by handles and refs, so that these may outlive the Runtime and then fail
// with kCancelled instead of dangling.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/actor/encoder.h"
#include "runtime/actor/fwd.h"
#include "runtime/actor/object_state.h"
#include "runtime/actor/pending_actor.h"
#include "runtime/actor/registry.h"
#include "runtime/core/result.h"
#include "runtime/node/membership.h"
#include "runtime/node/node_client.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

class ObjectClient;

class Process : public std::enable_shared_from_this<Process> {
 public:
  explicit Process(const Registry& registry);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  /// Takes over the connection to the node. Once, before anything else.
  void attach(std::unique_ptr<NodeClient> node);
  /// Ends all connections; everything outstanding fails. Idempotent; not from a handler.
  void shut_down();

  bool is_attached() const { return node_ != nullptr; }
  EventLoop& loop() { return loop_; }
  NodeClient& node() { return *node_; }
  ObjectClient& objects() { return *objects_; }
  const Registry& registry() const { return registry_; }

  /// The one client of this process for the actor; a newer incarnation replaces an older one.
  std::shared_ptr<ActorClient> client_for(const ActorAddress& address);

  /// Stores an encoded value: small ones in this process, large ones in shared memory. Errors: kResourceExhausted.
  Result<ObjectValue> store(Encoder& encoder);
  ObjectStatePtr put(Encoder& encoder);

  PendingActor start_actor(ActorSpec spec, std::vector<ObjectStatePtr> constructor_refs, std::chrono::milliseconds timeout);
  /// Blocks until the actor is created.
  Result<std::shared_ptr<ActorClient>> finish(const PendingActor& pending, Deadline deadline);

  /// Blocks until `count` of the objects are settled or the deadline passes. Returns how many are.
  std::size_t wait(std::span<const ObjectStatePtr> objects, std::size_t count, Deadline deadline);

  /// Runs an asynchronous request of the node and blocks for its answer: `ask(callback)`.
  template <class T, class Ask>
  Result<T> ask(Ask&& ask);

 private:
  struct Answer;

  const Registry& registry_;
  EventLoop loop_;
  std::unique_ptr<NodeClient> node_;
  std::unique_ptr<ObjectClient> objects_;

  std::mutex mutex_;
  std::unordered_map<ActorId, std::weak_ptr<ActorClient>> clients_;
  std::unordered_map<ActorId, std::vector<ObjectStatePtr>> constructor_refs_;  // held while their actor lives
  bool shut_down_ = false;
};

}  // namespace runtime
