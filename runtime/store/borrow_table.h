// BorrowTable: the processes (and stores of other nodes) that borrow objects without having them
// from the owner itself. Private to runtime/store.
//
// A process that gets a reference straight from the owner is known to it by the call that lent it.
// One that was passed on would be lost with the process that passed it on. So its receiver tells
// its node's store, which tells the owner (by way of the owner's node) until no process here
// borrows it any more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/store/extent_table.h"
#include "runtime/store/object_location.h"

namespace runtime::object_detail {

/// Plain bookkeeping; the store tells the owners.
class BorrowTable {
 public:
  using Client = ExtentTable::Client;

  /// True for the first: the owner is to be told. Counted for a client, or (with `counted` false)
  /// once however often it is added.
  bool add(Client client, const ObjectLocation& location, bool counted = true);
  /// True for the last. False also for one that the client does not borrow.
  bool remove(Client client, const ObjectLocation& location);
  /// Ends all that a client borrows; returns what no process borrows any more.
  std::vector<ObjectLocation> drop(Client client);
  bool has(const ObjectLocation& location) const { return borrowed_.contains(Key(location)); }
  /// Those of other nodes' objects whose node is at `endpoint`.
  std::vector<ObjectLocation> at(const std::string& endpoint, const NodeId& own_node) const;
  std::size_t size() const { return borrowed_.size(); }

 private:
  struct Key {
    explicit Key(const ObjectLocation& location)
        : id(location.id), node(location.node), extent(location.extent) {}
    ObjectId id;
    NodeId node;
    std::uint64_t extent;
    auto operator<=>(const Key&) const = default;
  };
  struct Borrow {
    ObjectLocation location;
    std::map<Client, std::uint32_t> by;
  };

  std::map<Key, Borrow> borrowed_;
};

}  // namespace runtime::object_detail
