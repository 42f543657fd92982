// ObjectTable: the stored objects that a process owns or borrows. It holds what others borrow
// without this process's having lent it to them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/call/fwd.h"
#include "runtime/call/stored_object.h"
#include "runtime/core/ids.h"
#include "runtime/store/object_wire.h"

namespace runtime {

/// Any thread. What it drops is dropped outside of its lock.
class ObjectTable final : public ObjectRegister {
 public:
  void add(const std::shared_ptr<StoredObject>& object, const ObjectLocation& location,
           bool owned) override;
  void remove(const ObjectLocation& location, bool owned) override;
  /// One whose lineage this process has, so that others ask it when they find the object lost.
  void add_remakeable(const std::shared_ptr<StoredObject>& object);
  /// Those that others made and that lie on that node now.
  std::vector<std::shared_ptr<StoredObject>> borrowed_from(NodeId node) const;
  /// Null: this process cannot make it again (any more).
  std::shared_ptr<StoredObject> find_remakeable(ObjectId id) const;

  /// Another process borrows an object of this process; unknown ones (freed just before) are
  /// ignored.
  void hold(const ObjectLocation& location);
  void unhold(const ObjectLocation& location);
  /// No process is left to borrow from.
  void clear();

  /// What others have lent of this process's objects: calls visit(location, in flight) for each.
  using VisitLent = std::function<void(const std::function<void(const ObjectLocation&, bool)>&)>;
  object_wire::ProcessReport report(const VisitLent& lent) const;

 private:
  struct Owned {
    std::weak_ptr<StoredObject> object;
    std::chrono::steady_clock::time_point made;
    std::shared_ptr<StoredObject> held;  // while it is borrowed
  };
  struct Borrowed {
    ObjectLocation location;
    std::uint32_t handles = 0;
    std::chrono::steady_clock::time_point since;
    std::vector<std::weak_ptr<StoredObject>> objects;  // as many as handles
  };

  mutable std::mutex mutex_;
  std::unordered_map<ObjectId, Owned> owned_;
  std::unordered_map<ObjectId, Borrowed> borrowed_;
  // Several of one object: a process that finds a published version twice has two, either of which
  // may go first.
  std::unordered_multimap<ObjectId, std::weak_ptr<StoredObject>> remakeable_;
};

}  // namespace runtime
