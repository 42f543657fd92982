// ObjectStore: the node's side of shared memory. It owns the segment, leases ranges of it to
// processes, counts pins, and fetches objects from other nodes. It knows ranges, not objects: what
// lies inside a leased range is its process's business, which is why a put needs no message.
//
// A range is free again when its holder has given it back (or died) and no process pins it. When
// the store fills up, ranges that no process reads move to disk and come back when one asks. A
// process that finds it full waits in line.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/store/object_store_options.h"
#include "runtime/store/object_wire.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/handshake.h"

namespace runtime {

struct ObjectStoreStats {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t leased_bytes = 0;    // held by living processes
  std::uint64_t orphaned_bytes = 0;  // given back or of dead processes, still pinned by readers
  std::uint64_t adopted_bytes = 0;   // kept in the store's own name
  std::uint64_t replica_bytes =
      0;  // copies of other nodes' objects; those not pinned make room when needed
  std::uint64_t retained_bytes = 0;  // free, but not given back to the system yet
  std::uint64_t spilled_bytes = 0;   // on disk
  std::uint64_t spills = 0;          // extents written, ever
  std::uint64_t restores = 0;        // and brought back
  std::uint64_t sent_bytes = 0;      // to other nodes, ever
  std::uint64_t fetched_bytes = 0;   // from other nodes, ever
  std::uint64_t wanted_bytes = 0;    // what those ask for who wait in line for room
  std::uint64_t pins = 0;
  std::uint64_t borrows = 0;  // objects that processes here (or, of objects here, other nodes) got
                              // from others than their owners
};

/// What a store and the processes of its node know of objects.
struct StoreList {
  struct OfProcess {
    Role role = Role::kTool;
    WorkerId worker;
    pid_t pid = 0;
    object_wire::ProcessReport report;
  };
  struct Process {
    Role role = Role::kTool;
    WorkerId worker;
    pid_t pid = 0;
  };
  struct OfExtent {  // one that processes have said objects of, or an adopted one
    bool resident = true;
    std::uint64_t pins = 0;
    Process holder;  // pid 0: no process, or one that has ended
  };
  std::vector<OfProcess> processes;
  std::vector<Process> silent;  // that have not answered in time
  std::map<std::uint64_t, OfExtent> extents;
  std::vector<ObjectLocation> adopted;
  std::vector<ObjectLocation> copies;  // of other nodes' objects
  ObjectStoreStats stats;
};

/// Any thread may make and destroy it; handle(), detach() and stats() are for the loop.
class ObjectStore {
 public:
  /// Errors: kResourceExhausted, kInvalidArgument (no shared memory to be had).
  static Result<std::unique_ptr<ObjectStore>> create(EventLoop& loop, ObjectStoreOptions options);
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;
  ~ObjectStore();

  /// Takes the frames of kind kObject, of local processes and of other nodes. Returns false and
  /// leaves the message alone if it is of another kind.
  bool handle(const std::shared_ptr<Channel>& channel, Message& message);

  /// A process of this node has connected: list() asks it too, also if it never has a request. On
  /// the loop.
  void attach(const std::shared_ptr<Channel>& channel);
  /// The connection has ended: its leases and pins go. Call it from the channel's on_close.
  void detach(const Channel& channel);

  /// Where other nodes reach this one, when it is known only after the store was made.
  void set_endpoint(std::string endpoint);

  /// Keeps the object in the store's own name, so that it outlives its owner. It keeps the very
  /// bytes if they lie in their own range here, else a copy. Answers with where they are; drop()
  /// gives it up. On the loop. Errors: kObjectLost, kResourceExhausted (no room for the copy),
  /// kUnavailable.
  void adopt(const ObjectLocation& location, UniqueFunction<void(Result<ObjectLocation>)> done);
  /// Gives up what was adopted: it ends when no process borrows or reads it any more. On the loop.
  void drop(const ObjectLocation& location);

  /// This node is about to leave: what its processes made stays when they end, until others have
  /// copied it. On the loop.
  void keep_what_ends();
  /// The node's processes take over what they refer to of that other node's objects. `done` hears
  /// how many objects could not be. On the loop.
  void take_over_from(NodeId node, std::chrono::milliseconds timeout,
                      UniqueFunction<void(std::uint64_t failed)> done);
  /// Where the store keeps the object in its own name. On the loop.
  std::optional<ObjectLocation> find_adopted(ObjectId object) const;

  /// Asks the node's processes what they hold; those that do not answer in time are left out. On
  /// the loop.
  void list(std::chrono::milliseconds timeout, UniqueFunction<void(StoreList)> done);

  ObjectStoreStats stats() const;

  /// Begins to give all free memory back to the system, as when the node runs short of it. Returns
  /// how much that is. On the loop.
  std::uint64_t give_back_free_memory();

 private:
  struct State;
  explicit ObjectStore(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace runtime
