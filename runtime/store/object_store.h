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
#include "runtime/store/object_wire.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/handshake.h"

namespace runtime {

/// Where objects go that no process reads while the store is full. Fractions are of the store's
/// capacity.
struct SpillOptions {
  std::string folder;  // of this store alone; empty: nothing is spilled
  std::uint64_t limit_bytes =
      0;  // on disk at most; 0: half of what the folder's disk has left when the store starts
  double high_water = 0.8;  // in use beyond it, the store spills in the background
  double low_water = 0.7;   // down to here
};

/// An object of another node, for as long as it was in transit.
struct FetchedObject {
  std::string from;  // the endpoint of its node
  std::uint64_t bytes = 0;
  Deadline asked{};
  bool arrived = false;
};

struct ObjectStoreOptions {
  Credentials credentials;  // of the node: its id, and what it shows to other nodes when it fetches
  std::string endpoint;     // where other nodes reach this one, "HOST:PORT"
  std::uint64_t capacity_bytes = 0;    // 0: 30 % of the memory that the machine or cgroup has
  std::uint64_t slab_bytes = 4 << 20;  // what a process leases for its small objects
  std::uint64_t retained_bytes_max =
      256ull << 20;  // free memory kept for good rather than given back to the system
  /// Free memory beyond that goes back when none of it was used for this long. So what the next
  /// step of a loop takes again costs no new pages.
  std::chrono::milliseconds retained_for{30'000};
  std::uint64_t chunk_bytes = 4 << 20;  // a fetch asks for this much at a time
  int chunks_in_flight_max = 4;
  int streams = 2;  // connections to a node that objects are fetched over
  std::chrono::milliseconds chunk_timeout{30000};
  std::chrono::milliseconds wait_max{600000};  // no process waits in line for room longer than that
  SpillOptions spill;
  /// Whether a node is in the cluster: tells one that is gone from one that cannot be reached.
  /// Null: none is ever known to be gone.
  std::function<void(NodeId, UniqueFunction<void(bool)>)> is_member;
  /// Where an object is whose node was drained and has left, as far as the cluster knows. Errors:
  /// kNotFound. Null: it is not known.
  std::function<void(const ObjectLocation& lost, UniqueFunction<void(Result<ObjectLocation>)>)>
      find_moved;
  /// How the process of this node that had that pid ended, or empty. Null: it is not known.
  std::function<std::string(pid_t)> how_ended;
  /// Hears of every fetch when it has ended. Null: no one is to hear of it.
  std::function<void(const FetchedObject&)> on_fetched;
};

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
