// NodeObjects: a node's object store, and what it asks and answers the head about objects.
#pragma once

#include <chrono>
#include <memory>

#include "runtime/control/control.h"
#include "runtime/core/result.h"
#include "runtime/node/ask_head.h"
#include "runtime/store/object_store.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

/// Lives on the event loop.
class NodeObjects {
 public:
  /// What the store has to know of the cluster (is_member, find_moved) is asked of the head.
  /// Errors: as ObjectStore::create.
  static Result<std::unique_ptr<NodeObjects>> open(EventLoop& loop, ObjectStoreOptions options,
                                                   const AskHead& head);
  NodeObjects(const NodeObjects&) = delete;
  NodeObjects& operator=(const NodeObjects&) = delete;

  ObjectStore& store() { return *store_; }
  /// From the head.
  void serve(ObjectControl& request, std::chrono::milliseconds timeout, ControlAnswerer answer);
  /// Serves the head's request to take over what a drained node's store has.
  void take_over(const control::TakeOver& request, std::chrono::milliseconds timeout,
                 ControlAnswerer answer);

 private:
  NodeObjects(NodeId node, std::unique_ptr<ObjectStore> store)
      : node_(node), store_(std::move(store)) {}

  const NodeId node_;
  const std::unique_ptr<ObjectStore> store_;
};

}  // namespace runtime
