// StoreMemory: the segment of a store, whom it takes room from, and what goes back to the system.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/core/timer.h"
#include "runtime/store/extent_table.h"
#include "runtime/store/object_store_options.h"
#include "runtime/store/room_line.h"
#include "runtime/store/segment.h"

namespace runtime::object_detail {

/// The store's own leases (copies of other nodes' objects) and pins (outgoing bytes).
inline constexpr ExtentTable::Client kStoreItself = 1;

/// The segment and its bookkeeping. On the event loop.
class StoreMemory : public std::enable_shared_from_this<StoreMemory> {
 public:
  StoreMemory(EventLoop& event_loop, std::unique_ptr<Segment> mapped,
              const ObjectStoreOptions& options);

  /// Leases, discarding retained pages if fragmentation asks for it, and copies of other nodes'
  /// objects if need be. Nothing when there is no room.
  std::optional<Extent> lease(std::uint64_t bytes, ExtentTable::Client holder);
  /// The same for ExtentTable::take().
  std::optional<ByteRange> take(std::uint64_t bytes);
  /// Something became free, or ended: serves those in line. Free memory beyond the limit goes back
  /// to the system when it stays unused, a little at a time.
  void changed();
  /// As ObjectStore::give_back_free_memory.
  std::uint64_t give_back_free();
  /// Keeps an extent until the returned pointer is dropped (by any thread). Null when the extent is
  /// gone.
  std::shared_ptr<void> hold(std::uint64_t extent);

  EventLoop& loop;
  const std::unique_ptr<Segment> segment;
  ExtentTable table;
  const std::shared_ptr<RoomLine> line;
  std::string endpoint;  // where other nodes reach this store
  // Set by the store, and cleared when it stops.
  std::function<bool()>
      evict_copy;  // drops a copy of another node's object; false when there is none to drop
  std::function<void()> balance;                   // memory was taken or is wanted
  std::function<std::string(std::uint64_t)> full;  // what a failure to find room for N bytes says
  std::function<void(std::uint64_t)> on_ended_on_disk;  // a vacated extent ended
  std::function<void(std::uint64_t)> on_ended_shared;   // one that other nodes have copied from

 private:
  template <class Take>
  auto find_room(std::uint64_t bytes, Take take) -> decltype(take());
  void watch_unused();
  void trim_later(std::chrono::milliseconds pause);
  void trim_step();

  const std::uint64_t retained_bytes_max_;
  const std::chrono::milliseconds retained_for_;
  Timer trim_timer_;
  bool watching_ = false;  // the timer runs: until retained_for_ is over, or between two steps
  std::uint64_t unused_bytes_ = 0;   // retained all the time since it was set
  std::uint64_t to_trim_bytes_ = 0;  // by steps
};

}  // namespace runtime::object_detail
