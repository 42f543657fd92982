// SharedHeap: the state that an ObjectClient and its views share; the process's side of the leases.
// Private to runtime/store.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/store/extent_table.h"
#include "runtime/store/object_client.h"
#include "runtime/store/object_wire.h"
#include "runtime/store/segment.h"

namespace runtime {

/// Any thread may call any method. Lives as long as the client or any view, and with it the
/// mapping.
class SharedHeap : public ObjectHome, public std::enable_shared_from_this<SharedHeap> {
 public:
  using GetDone = UniqueFunction<void(Result<BytesView>)>;

  SharedHeap(std::shared_ptr<Channel> node, ObjectClientOptions options);
  ~SharedHeap() override;

  Result<WritableObject> create(std::size_t size, ObjectId id, Deadline deadline,
                                const std::stop_token& stop = {});
  ObjectLocation seal(WritableObject object);
  void free(const ObjectLocation& location);
  void abandon(const ObjectLocation& location) override;
  /// `done` exactly once, maybe before returning, maybe later than anyone waits for it.
  void get(const ObjectLocation& location, Deadline deadline, GetDone done);
  void borrow(const ObjectLocation& location);
  void unborrow(const ObjectLocation& location);
  void borrow_and_confirm(const ObjectLocation& location, Deadline deadline,
                          UniqueFunction<void(Status)> done);
  void remake(const ObjectLocation& lost, const std::string& keeper, Deadline deadline,
              UniqueFunction<void(Result<ObjectLocation>)> done);
  void take_over(const ObjectLocation& location, Deadline deadline,
                 UniqueFunction<void(Result<ObjectLocation>)> done);
  void keep_all();
  /// The store is short of memory: names extents of at least N bytes that this process does
  /// not use now, if it has them. From then on it pins them like anyone else before it reads.
  std::vector<std::uint64_t> surrender(std::uint64_t bytes);

  EventLoop& loop() { return loop_; }
  /// The client is gone: gives back what is empty and lets go of the channel. What is still held
  /// goes back when the channel closes.
  void retire();

 private:
  /// A range leased from the store, filled from the front.
  struct Lease {
    Extent extent;
    std::uint64_t used = 0;
    std::uint64_t live = 0;    // objects (unsealed too) and views of them in this process
    std::uint64_t in_use = 0;  // of these, unsealed objects and views
    bool open = false;         // takes further objects
    bool single = false;       // of one object alone
    bool freed = false;        // which its owner has freed
    bool surrendered = false;  // the store may move it; its range is not ours to touch
  };
  /// An extent of another process that views of this process pin.
  struct Pinned {
    Extent extent;
    std::uint64_t views = 0;
    std::uint64_t pins = 0;  // that the store counts for us
  };
  class Guard;

  Status open(std::unique_lock<std::mutex>& lock, Deadline deadline);
  Status adopt_store(Result<Message> reply);
  Result<Lease*> lease(std::unique_lock<std::mutex>& lock, std::uint64_t bytes, bool open,
                       Deadline deadline, const std::stop_token& stop);
  /// The store's answer; kCancelled once stopped, and what is leased then goes back when it comes.
  Result<Message> ask_for_lease(Channel& node, std::uint64_t bytes, std::uint64_t wait_ms,
                                const std::stop_token& stop);
  void return_late(const Message& reply);
  Status check_extent(const Extent& extent, std::uint64_t bytes) const;
  void prefetch_slab();
  WritableObject carve(Lease& lease, std::size_t size, ObjectId id);
  void release_live(std::uint64_t extent);
  void end_use(std::uint64_t extent);
  void give_back(std::uint64_t extent);
  void add_pin(const Extent& extent);
  void unpin(std::uint64_t extent);
  void tell(const object_wire::Request& request);
  Result<BytesView> view(const ObjectLocation& location, const Extent& extent, bool own);
  void pin_and_view(Channel& node, const ObjectLocation& location, Deadline deadline, GetDone done);
  void fetch_and_view(Channel& node, const ObjectLocation& location, Deadline deadline,
                      GetDone done);
  ObjectId fresh_id();

  EventLoop& loop_;
  const ObjectClientOptions options_;

  std::mutex mutex_;                  // guards what follows
  std::shared_ptr<Channel> node_;     // null once retired: views may outlive the event loop
  std::unique_ptr<Segment> segment_;  // set once
  object_wire::StoreInfo store_;
  std::unordered_map<std::uint64_t, Lease> leases_;   // by extent
  std::unordered_map<std::uint64_t, Pinned> pinned_;  // by extent
  Lease* slab_ = nullptr;                             // the open one, in leases_
  std::optional<Extent> next_slab_;
  bool prefetching_ = false;
  bool keeps_all_ = false;  // nothing is freed any more
  ObjectId id_base_;
  std::uint64_t id_count_ = 0;
};

}  // namespace runtime
