// The cluster's records of its objects: those that are published, and for people who look for what
// keeps memory, all of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/ids.h"

namespace runtime {

/// Where an object's bytes are.
enum class ObjectPlace : std::uint16_t {
  kUnknown = 0,  // its node has not said (any more): a borrower outlives its owner
  kMemory = 1,   // in its node's shared memory
  kDisk = 2,     // spilled
  kHead = 3,     // a small published value, which the head keeps
};
std::string_view to_string(ObjectPlace place);

/// A process that refers to an object which another one owns.
struct ObjectBorrower {
  NodeId node;
  std::int32_t pid = 0;
  std::uint32_t handles = 0;
  std::string name;  // "Counter 7f3a0011", "driver"

  bool operator==(const ObjectBorrower&) const = default;
};

/// One object with all that keeps it. Counts are taken process by process, not at one moment.
struct ObjectInfo {
  ObjectId id;
  NodeId node;  // that has the bytes
  std::uint64_t size = 0;
  ObjectPlace place = ObjectPlace::kUnknown;
  NodeId owner_node;
  std::int32_t owner_pid = 0;        // 0: the cluster owns it (published), or no process (any more)
  std::string owner;                 // "Counter 7f3a0011", "driver", "cluster"
  std::chrono::milliseconds age{0};  // since it was made
  std::uint32_t handles = 0;  // values in its owner that refer to it: references, arguments and
                              // results that are kept for others
  std::uint32_t lent =
      0;  // calls of its owner with it in their arguments, whose callee has not let go
  std::uint32_t in_flight = 0;  // of these, calls without an answer yet
  std::uint32_t held = 0;       // kept by its owner for borrowers that got it from others
  std::uint32_t readers =
      0;  // pins of processes and nodes that read it now (of a small one: its neighbours too)
  std::vector<ObjectBorrower> borrowers;
  std::vector<std::string> published;  // "namespace/name@version"
  std::vector<NodeId> copies;          // other nodes that have the bytes too

  bool operator==(const ObjectInfo&) const = default;
};

/// A node's store.
struct StoreInfo {
  NodeId node;
  std::uint64_t capacity_bytes = 0;
  std::uint64_t leased_bytes = 0;     // held by living processes
  std::uint64_t orphaned_bytes = 0;   // given back, or of dead processes, and still read
  std::uint64_t replica_bytes = 0;    // copies of other nodes' objects
  std::uint64_t published_bytes = 0;  // kept in the store's own name
  std::uint64_t spilled_bytes = 0;    // on disk
  std::uint64_t sent_bytes = 0;       // to other nodes, ever
  std::uint64_t fetched_bytes = 0;    // from other nodes, ever
  std::uint64_t pins = 0;
  std::uint64_t borrows = 0;         // objects that were lent on and whose owners were told
  std::uint64_t inline_objects = 0;  // small values that lie in the node's processes themselves

  bool operator==(const StoreInfo&) const = default;
};

struct ObjectList {
  static constexpr std::size_t kObjectsMax = 10'000;  // of a node, in one list

  std::vector<ObjectInfo> objects;  // ordered by id
  std::vector<StoreInfo> stores;
  bool truncated = false;             // there are more
  std::vector<std::string> troubles;  // nodes and processes that have not answered: what they own
                                      // and refer to may be missing

  bool operator==(const ObjectList&) const = default;
};

/// A process refers to it, and no process has said that it owns it.
bool lacks_owner(const ObjectInfo& object);
/// Processes answer at different moments: an object may have been made after its owner had
/// answered, or let go before. `before` is another list, taken earlier: what lacks an owner in both
/// has lost it. Of the others, those that are new are left out, and the rest have the owner that
/// they had.
void settle_owners(ObjectList& now, const ObjectList& before);

/// Puts together what several have said about the same objects.
void merge(ObjectList& into, ObjectList from);

}  // namespace runtime
