// CompletionQueue: objects in the order in which they settle, for one waiting thread.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/call/fwd.h"
#include "runtime/call/object_state.h"

namespace runtime {

/// Watches objects from its making on. Not thread-safe but for the objects that settle meanwhile.
/// Cost: constant per object.
class CompletionQueue final : public WaitSink {
 public:
  explicit CompletionQueue(std::vector<ObjectStatePtr> objects);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  ~CompletionQueue();

  /// The position of the next object that has settled, each once; the queue lets go of it. Nothing:
  /// the deadline has passed, all have been returned, or the process is shutting down.
  std::optional<std::size_t> next(Deadline deadline);
  /// How many have not been returned.
  std::size_t remaining() const { return remaining_; }

  void on_settled(WaitNode& node, const ObjectState& object) override;

 private:
  struct Watched {
    WaitNode node;  // first: on_settled() finds the entry by it
    ObjectStatePtr object;
    bool linked = false;
  };

  void release(Watched& watched);

  std::vector<Watched> watched_;
  std::size_t remaining_;
  ObjectContextPtr context_;  // this and event_ are null when all had settled from the start
  std::unique_ptr<Event> event_;

  std::mutex mutex_;  // guards what follows
  std::deque<std::size_t> settled_;
};

}  // namespace runtime
