// AdoptedObjects: the objects that a store keeps in its own name, for the cluster or after the end
// of an object's owner. Private to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/store/borrowers.h"
#include "runtime/store/fetcher.h"
#include "runtime/store/resident_pins.h"
#include "runtime/store/store_memory.h"

namespace runtime::object_detail {

/// Lives on the event loop.
class AdoptedObjects : public std::enable_shared_from_this<AdoptedObjects> {
 public:
  using Done = UniqueFunction<void(Result<ObjectLocation>)>;

  AdoptedObjects(std::shared_ptr<StoreMemory> memory, std::shared_ptr<Fetcher> fetcher,
                 std::shared_ptr<Borrowers> borrowers, std::shared_ptr<ResidentPins> pins,
                 const ObjectStoreOptions& options)
      : memory_(std::move(memory)),
        fetcher_(std::move(fetcher)),
        borrowers_(std::move(borrowers)),
        pins_(std::move(pins)),
        node_(options.credentials.node),
        wait_max_(options.wait_max),
        find_moved_(options.find_moved) {}

  /// As ObjectStore::adopt.
  void adopt(const ObjectLocation& location, Done done);
  /// As adopt(), for a process that goes on borrowing it; where it is kept already, once more.
  void take_over(const ObjectLocation& location, Done done);
  /// As ObjectStore::drop.
  void drop(const ObjectLocation& location);
  /// No process borrows an object of this node any more. Whether it was kept and given up before,
  /// so that it goes now.
  bool returned(const ObjectLocation& location);

  /// As Fetcher::fetch; of an object whose node was drained from where it is now. `done` may get a
  /// place that the store itself has adopted.
  void fetch_moved(const ObjectLocation& location, Deadline room_deadline, Done done);

  /// Null: it is not kept here.
  const ObjectLocation* find(ObjectId object) const;
  std::vector<ObjectLocation> all() const;

 private:
  struct Adopted {
    ObjectLocation location;
    std::uint32_t count = 0;    // adoptions: one object may be published under several names
    std::uint32_t dropped = 0;  // of these, given up and still borrowed
  };

  void adopt_here(const ObjectLocation& location, const Extent& extent, Done done);
  /// Its range is shared with others, which would all stay with it.
  void adopt_part(const ObjectLocation& location, const Extent& extent,
                  std::span<const std::byte> bytes, Done done);
  /// The table keeps its extent once more.
  void adopt_copy(ObjectId id, Result<ObjectLocation> copy, Done done);
  void note(const ObjectLocation& location);
  void release(std::uint64_t extent, std::uint32_t count);
  void unpin(std::uint64_t extent);
  Deadline room_deadline() const { return deadline_after(wait_max_); }

  const std::shared_ptr<StoreMemory> memory_;
  const std::shared_ptr<Fetcher> fetcher_;
  const std::shared_ptr<Borrowers> borrowers_;
  const std::shared_ptr<ResidentPins> pins_;
  const NodeId node_;
  const std::chrono::milliseconds wait_max_;
  const decltype(ObjectStoreOptions::find_moved) find_moved_;
  std::map<std::uint64_t, Adopted> adopted_;  // by extent
};

}  // namespace runtime::object_detail
