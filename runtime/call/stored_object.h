// StoredObject: an object in a node's store, owned by this process or borrowed from another.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "runtime/call/fwd.h"
#include "runtime/call/object_state.h"
#include "runtime/core/result.h"
#include "runtime/store/object_access.h"
#include "runtime/store/object_location.h"

namespace runtime {

/// The stored objects of a process. Any thread.
class ObjectRegister {
 public:
  /// `location`: where the object is at first.
  virtual void add(const std::shared_ptr<StoredObject>& object, const ObjectLocation& location,
                   bool owned) = 0;
  /// In the object's destructor, with what was added.
  virtual void remove(const ObjectLocation& location, bool owned) = 0;

 protected:
  ~ObjectRegister() = default;
};

/// Any thread may call any method.
class StoredObject : public std::enable_shared_from_this<StoredObject> {
 public:
  /// How this process came to it:
  /// - kOwned: made here, and freed when the last state that refers to it goes.
  /// - kBorrowed: lent by the process that made it.
  /// - kPassedOn: passed on by another process; the owner learns of it by way of the nodes
  ///   (ObjectClient::borrow).
  /// - kConfirmed: passed on in the same way, and the owner has learned of it already.
  enum class Kind { kOwned, kBorrowed, kPassedOn, kConfirmed };

  /// In `objects` as long as it lives.
  static std::shared_ptr<StoredObject> make(std::shared_ptr<ObjectAccess> store,
                                            std::shared_ptr<ObjectRegister> objects,
                                            ObjectLocation location, Kind kind);
  StoredObject(const StoredObject&) = delete;
  StoredObject& operator=(const StoredObject&) = delete;
  ~StoredObject();

  /// What made it, and makes it again. Before the object is shared.
  void set_lineage(std::shared_ptr<Lineage> lineage) { lineage_ = std::move(lineage); }
  const std::shared_ptr<Lineage>& lineage() const { return lineage_; }
  bool is_owned() const;

  /// Where it is; elsewhere once it was lost and made again.
  ObjectLocation location() const;
  std::uint64_t size() const { return original_.size; }

  /// Pins the object on this node while the buffer lives; blocks. It fetches the object if it is on
  /// another node, and brings it back if it is on disk. It makes the object again if it is lost and
  /// can be. While another view of it lives in this process it costs no message. A reference alone
  /// pins nothing, so that the store may move what no process reads. Errors: kDeadlineExceeded;
  /// kObjectLost, which says what made it, where it was and why it is not made again.
  Result<Buffer> open(Deadline deadline);
  /// The same without blocking: `done` once, at once or on the event loop.
  void open(Deadline deadline, UniqueFunction<void(Result<Buffer>)> done);

  /// Looks whether the object is lost, and makes it again if so. `done` is called once, with where
  /// it is. Errors: as open().
  void recover(Deadline deadline, UniqueFunction<void(Result<ObjectLocation>)> done);
  /// A reader failed to read the object at `lost`, for the reason `why`: makes it again unless that
  /// has happened since. So it does for another process though this one may still read the copy
  /// that its node has fetched.
  void replace(const ObjectLocation& lost, const Status& why,
               UniqueFunction<void(Result<ObjectLocation>)> done);
  /// Its node is about to leave: has this process's node keep it, where it is from now on. Errors:
  /// as ObjectClient::take_over.
  /// `as_object` makes an object of this process of what is kept.
  void move_to_own_node(Deadline deadline, std::function<ObjectStatePtr(ObjectValue)> as_object,
                        UniqueFunction<void(Status)> done);
  /// As recover(); `done` hears whether it was lost and is there again.
  void restore(Deadline deadline, UniqueFunction<void(bool made_again)> done);

 private:
  StoredObject(std::shared_ptr<ObjectAccess> store, std::shared_ptr<ObjectRegister> objects,
               ObjectLocation location, Kind kind);
  ObjectLocation present_location() const;  // with mutex_ held
  /// The object being made again because what was at `lost` is not there; null: it has been
  /// meanwhile. Errors: kObjectLost.
  Result<ObjectStatePtr> make_again(const ObjectLocation& lost, const Status& why);
  /// Reading what is at `at` failed, and why: `done` once the object can be read again. Errors:
  /// kObjectLost; `why` itself when that is no loss.
  void bring_back(const ObjectLocation& at, const Status& why, UniqueFunction<void(Status)> done);
  /// What was made is the object from now on. Errors: kObjectLost.
  Status adopt(const ObjectStatePtr& made);
  Status loss(const ObjectLocation& lost, const Status& why, const Status& not_again) const;

  const std::shared_ptr<ObjectAccess> store_;
  const std::shared_ptr<ObjectRegister> objects_;
  const ObjectLocation original_;
  const Kind kind_;
  std::shared_ptr<Lineage> lineage_;

  mutable std::mutex mutex_;  // guards what follows; taken before those of the pool of tasks and of
                              // other objects that this one is made from
  ObjectStatePtr present_;    // made again; null: it is where it was at first
  ObjectStatePtr coming_;     // being made again
};

}  // namespace runtime
