// ObjectStore: the node's side of shared memory. It owns the segment, leases ranges of it to processes, counts pins, and fetches objects from
// other nodes. It knows ranges, not objects: what lies inside a leased range is its process's business, which is why a put needs no message.
//
// A range is free again when its holder has given it back (or died) and nobody pins it. When the store fills up, ranges that nobody reads move to
// disk and come back when somebody asks; who finds it full waits in line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/core/result.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/handshake.h"

namespace runtime {

/// Where objects go that nobody reads while the store is full. Fractions are of the store's capacity.
struct SpillOptions {
  std::string folder;            // of this store alone; empty: nothing is spilled
  std::uint64_t limit_bytes = 0; // on disk at most; 0: half of what the folder's disk has left when the store starts
  double high_water = 0.8;       // in use beyond it, the store spills in the background
  double low_water = 0.7;        // down to here
};

struct ObjectStoreOptions {
  Credentials credentials;              // of the node: its id, and what it shows to other nodes when it fetches
  std::string endpoint;                 // where other nodes reach this one, "HOST:PORT"
  std::uint64_t capacity_bytes = 0;     // 0: 30 % of the memory that the machine or cgroup has
  std::uint64_t slab_bytes = 4 << 20;   // what a process leases for its small objects
  std::uint64_t retained_bytes_max = 256ull << 20;  // free memory kept for reuse rather than given back to the system
  std::uint64_t chunk_bytes = 4 << 20;  // a fetch asks for so much at a time
  int chunks_in_flight_max = 4;
  int streams = 2;                      // connections to a node that objects are fetched over
  std::chrono::milliseconds chunk_timeout{30000};
  std::chrono::milliseconds wait_max{600000};  // nobody waits in line for room longer than that
  SpillOptions spill;
};

struct ObjectStoreStats {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t leased_bytes = 0;    // held by living processes
  std::uint64_t orphaned_bytes = 0;  // given back or of dead processes, still pinned by readers
  std::uint64_t replica_bytes = 0;   // copies of other nodes' objects; those not pinned make room when needed
  std::uint64_t retained_bytes = 0;  // free, but not given back to the system yet
  std::uint64_t spilled_bytes = 0;   // on disk
  std::uint64_t spills = 0;          // extents written, ever
  std::uint64_t restores = 0;        // and brought back
  std::uint64_t pins = 0;
};

/// Any thread may make and destroy it; handle(), detach() and stats() are for the loop.
class ObjectStore {
 public:
  /// Errors: kResourceExhausted, kInvalidArgument (no shared memory to be had).
  static Result<std::unique_ptr<ObjectStore>> create(EventLoop& loop, ObjectStoreOptions options);
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;
  ~ObjectStore();

  /// Takes the frames of kind kObject, of local processes and of other nodes. Returns false and leaves the message alone if it is of another kind.
  bool handle(const std::shared_ptr<Channel>& channel, Message& message);

  /// The connection has ended: its leases and pins go. Call it from the channel's on_close.
  void detach(const Channel& channel);

  /// Where other nodes reach this one, when it is known only after the store was made.
  void set_endpoint(std::string endpoint);

  ObjectStoreStats stats() const;

 private:
  struct State;
  explicit ObjectStore(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace runtime
