// ObjectState: one immutable object as this process knows it. It is still being computed, here, in
// shared memory, or failed.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/call/fwd.h"
#include "runtime/codec/encoder.h"
#include "runtime/core/ids.h"
#include "runtime/core/result.h"
#include "runtime/transport/buffer.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

/// The bytes of an object, and the references that they point to by index.
struct ObjectValue {
  Buffer bytes;                          // the value itself, when it is small
  std::shared_ptr<StoredObject> stored;  // or where it is in a node's store
  std::vector<ObjectStatePtr> refs;
  /// What keeps the object, and the objects in `refs`, alive at the process they came from; dropped
  /// with the state.
  std::shared_ptr<const void> loan;

  /// Whether it depends on objects of some process, which then must learn of every holder.
  bool refers() const { return stored != nullptr || !refs.empty(); }
};

struct WaitNode;

/// Makes an object that is not there yet: a call, or a task.
class Producer {
 public:
  virtual ~Producer() = default;
  /// Wants the making to end; the object settles by itself. `self`: this. As Runtime::cancel.
  virtual Status cancel(const std::shared_ptr<Producer>& self, CancelMode mode) = 0;
  /// What makes what this one waits for: a task's call, or all that when_all() waits for.
  virtual std::vector<std::shared_ptr<Producer>> parts() const { return {}; }
};

/// Notified of objects as they settle.
class WaitSink {
 public:
  /// On the thread that settles `object`, under the object's mutex: short, and without calls into
  /// any object.
  virtual void on_settled(WaitNode& node, const ObjectState& object) = 0;

 protected:
  ~WaitSink() = default;
};

/// A sink's place in the list of an object. It stays put from add_waiter() to remove_waiter(),
/// settled or not.
struct WaitNode {
  WaitSink* sink = nullptr;
  WaitNode* next = nullptr;
  WaitNode* previous = nullptr;
};

/// Shared by all ObjectRefs to the object in this process. Settled once, by a value or a failure;
/// any thread may wait.
class ObjectState : public Referent {
 public:
  /// Pending. `context` may be null where no thread waits for it before it is settled.
  explicit ObjectState(ObjectContextPtr context);
  ~ObjectState();
  ObjectState(const ObjectState&) = delete;
  ObjectState& operator=(const ObjectState&) = delete;

  static ObjectStatePtr ready(ObjectContextPtr context, ObjectValue value);
  static ObjectStatePtr failed(ObjectContextPtr context, Status why);

  /// Says what makes it, so that it can be cancelled. Before the state is shared.
  void set_producer(std::weak_ptr<Producer> producer) { producer_ = std::move(producer); }
  /// Null: neither call nor task makes it, or it is settled.
  std::shared_ptr<Producer> producer() const;

  /// Settles the object; the waiters go on. Later calls are ignored.
  void fulfil(ObjectValue value);
  void fail(Status why);

  bool is_settled() const { return settled_.load(std::memory_order_acquire); }

  /// Blocks until settled: false at the deadline, or when the process is shutting down. Not from a
  /// handler of the event loop.
  bool wait(Deadline deadline) const;
  /// Runs `action` once settled: at once if it is, else on the thread that settles it.
  void then(UniqueFunction<void()> action) const;

  /// For waiting on several: false (and nothing added) if it is settled already. What was added
  /// must be removed; after that the sink is not called any more.
  bool add_waiter(WaitNode& node) const;
  void remove_waiter(WaitNode& node) const;

  /// Of a settled object: why there is no value, or ok.
  const Status& failure() const { return failure_; }
  /// Of a settled object without failure.
  const ObjectValue& value() const { return value_; }

  /// The object's bytes: the inline ones, or a pinned view of shared memory, which blocks while
  /// they come from another node. Waits for the object to settle. Errors: the object's own;
  /// kDeadlineExceeded; kObjectLost.
  Result<Buffer> open(Deadline deadline) const;

  /// The same of a settled object without blocking: `done` once, at once or on the event loop.
  void open(Deadline deadline, UniqueFunction<void(Result<Buffer>)> done) const;

  /// Of a settled object without failure: reads its bytes, which open() gave.
  Decoder decoder(Buffer bytes) const;

  const ObjectContextPtr& context() const { return context_; }

 private:
  void settle(std::unique_lock<std::mutex>& lock);

  const ObjectContextPtr context_;
  std::atomic<bool> settled_{false};
  mutable std::mutex mutex_;
  mutable std::vector<UniqueFunction<void()>> actions_;
  mutable WaitNode* waiters_ = nullptr;
  std::weak_ptr<Producer> producer_;  // forgotten once settled
  ObjectValue value_;                 // this and failure_ are constant once settled
  Status failure_;
};

/// The object that a value refers to; null for null. Values refer to nothing but objects.
inline ObjectStatePtr referred_object(ReferentPtr referent) {
  return std::static_pointer_cast<ObjectState>(std::move(referent));
}
/// The same of all that an encoding refers to, in the order of their index.
std::vector<ObjectStatePtr> referred_objects(std::vector<ReferentPtr> referents);

}  // namespace runtime
