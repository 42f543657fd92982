// ObjectStoreOptions: what a node's object store is made with.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/core/result.h"
#include "runtime/store/object_wire.h"
#include "runtime/transport/handshake.h"
#include "runtime/transport/unique_function.h"

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

}  // namespace runtime
