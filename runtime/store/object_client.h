// ObjectClient: a process's access to the objects of its node and, through it, of other nodes.
//
// The node's segment is mapped once, read-write for creating and read-only for reading. Small
// objects are cut from a leased slab, so that putting one is a memcpy and no message; a large one
// leases its own range. The creating process counts references (above this layer) and says
// free(); readers pin, so that memory is not reused under them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "runtime/core/result.h"
#include "runtime/store/bytes_view.h"
#include "runtime/store/object_access.h"
#include "runtime/store/object_location.h"
#include "runtime/store/object_wire.h"
#include "runtime/transport/channel.h"

namespace runtime {

class SharedHeap;

struct ObjectClientOptions {
  /// How long create() waits for memory when it is given no deadline.
  std::chrono::milliseconds lease_timeout{30000};
};

/// Any thread may call any method; the blocking ones not from a handler of the event loop.
class ObjectClient final : public ObjectAccess {
 public:
  /// `node` is the channel to this process's own node, which must run the store. Costs nothing
  /// until the first object.
  explicit ObjectClient(std::shared_ptr<Channel> node, ObjectClientOptions options = {});
  ObjectClient(const ObjectClient&) = delete;
  ObjectClient& operator=(const ObjectClient&) = delete;
  /// Views and unsealed objects may outlive the client and even the event loop. Their memory then
  /// goes back when the channel closes, so keep the channel open while they are used.
  ~ObjectClient();

  /// As EventLoop::is_forked().
  bool is_forked() const override;

  /// Memory for an object of `size` bytes; `id` none picks a fresh one. Blocks for one round trip
  /// when a new slab or its own range is needed. In a full store it blocks until others have freed
  /// enough or enough has moved to disk. Errors: kResourceExhausted (full still at the deadline; at
  /// once when it could never fit), kUnavailable (node gone), kCancelled (told to stop while it
  /// waited).
  Result<WritableObject> create(std::size_t size, ObjectId id = {});
  Result<WritableObject> create(std::size_t size, ObjectId id, Deadline deadline,
                                const std::stop_token& stop = {});

  /// Makes the object readable and immutable. The caller owns it from now on, and frees it once.
  ObjectLocation seal(WritableObject object);

  /// create, memcpy, seal.
  Result<ObjectLocation> put(std::span<const std::byte> bytes, ObjectId id = {});

  /// Gives back an object that this client created. Existing views stay valid. Unknown locations
  /// are ignored.
  void free(const ObjectLocation& location) override;

  /// The object's bytes. Created here: at once. On this node: a round trip that pins it, no copy.
  /// On another node: our node fetches it first, in pipelined chunks, once for all its processes.
  /// Errors: kObjectLost (freed, or its node has lost it), kUnavailable (node cannot be reached),
  /// kDeadlineExceeded, kResourceExhausted (no room for the copy).
  Result<BytesView> get(const ObjectLocation& location, Deadline deadline) override;
  /// The same with a callback, which runs exactly once: at once on the calling thread for objects
  /// created here, else on the loop.
  void get(const ObjectLocation& location, Deadline deadline,
           UniqueFunction<void(Result<BytesView>)> done) override;

  /// This process has a reference that it did not get from the object's owner. The owner learns of
  /// it by way of the nodes, and keeps the object until unborrow(), or the end of this process.
  /// Counted. Does not block.
  void borrow(const ObjectLocation& location) override;
  void unborrow(const ObjectLocation& location) override;
  /// The same as borrow(); `done` (once, on the loop or at once) hears whether the object was still
  /// there. Unborrow it in any case. Errors: kObjectLost, kUnavailable (a node cannot be reached).
  void borrow_and_confirm(const ObjectLocation& location, Deadline deadline,
                          UniqueFunction<void(Status)> done);

  /// Has an object that is lost made again by the process that can, on the node `keeper`. `done`
  /// (once, on the loop or at once) hears where it is then. Errors: kObjectLost (no process there
  /// can), kUnavailable (that node cannot be reached), why making it failed.
  void remake(const ObjectLocation& lost, const std::string& keeper, Deadline deadline,
              UniqueFunction<void(Result<ObjectLocation>)> done);

  /// The object's node is about to leave. This process's own node keeps the object from now on, and
  /// this process borrows it there. `done` (once, on the loop or at once) hears where: unborrow()
  /// that. Errors: kObjectLost, kUnavailable, kResourceExhausted (no room here), kDeadlineExceeded.
  void take_over(const ObjectLocation& location, Deadline deadline,
                 UniqueFunction<void(Result<ObjectLocation>)> done) override;
  /// This process and its node end: what it made is not freed any more, since others are about to
  /// copy it.
  void keep_all();

  /// What the store asks of the process that owns objects. Set once, before the first handle().
  struct OwnerHooks {
    std::function<void(const ObjectLocation&)> hold;    // another process borrows it
    std::function<void(const ObjectLocation&)> unhold;  // no process does any more
    std::function<object_wire::ProcessReport()> report;
    /// Makes it again if this process can. Errors: kNotFound (it cannot), why making it failed.
    std::function<void(const ObjectLocation& lost,
                       UniqueFunction<void(Result<ObjectLocation>)> done)>
        remake = {};
    /// The node is about to leave: takes over what this process refers to there. `done` hears how
    /// many objects it could not.
    std::function<void(NodeId node, UniqueFunction<void(std::uint64_t failed)> done)> evacuate = {};
  };
  void set_owner_hooks(OwnerHooks hooks) { hooks_ = std::move(hooks); }

  /// Answers what the store asks of this process (to let go of memory when it is full, who borrows
  /// what). Returns false and leaves the message alone if it is of another kind. Without it this
  /// process's objects are never moved to disk. On the loop.
  bool handle(const std::shared_ptr<Channel>& node, Message& message);

 private:
  ObjectClientOptions options_;
  OwnerHooks hooks_;
  std::shared_ptr<SharedHeap> heap_;
};

}  // namespace runtime
