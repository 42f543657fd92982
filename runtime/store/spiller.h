// Spiller: keeps a store from filling up, by moving what no process reads to disk, and brings it
// back when a process asks for it. Private to runtime/store.
//
// An extent may move only once its holder has surrendered it: until then the holder writes and
// reads it without asking. So over the high-water mark the spiller asks the holders. It writes what
// they name (those used longest ago first) on its own thread, and frees the memory if no process
// has pinned it meanwhile. A failed write changes nothing: the bytes are where they were. When
// memory and disk are both full, an extent that is asked for changes places with one that is not.
// Its bytes are parked in this process's own memory while the other one takes its place on disk.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/core/timer.h"
#include "runtime/store/spill_folder.h"
#include "runtime/store/store_memory.h"
#include "runtime/transport/work_thread.h"

namespace runtime::object_detail {

/// Lives on the event loop.
class Spiller : public std::enable_shared_from_this<Spiller> {
 public:
  using Restored = UniqueFunction<void(Status)>;
  /// Asks the holders to surrender about N bytes; `done` runs once they have answered, with
  /// whether they surrendered any.
  using AskHolders = std::function<void(std::uint64_t bytes, UniqueFunction<void(bool)> done)>;

  Spiller(std::shared_ptr<StoreMemory> memory, std::unique_ptr<SpillFolder> folder,
          const SpillOptions& options, AskHolders ask_holders);
  Spiller(const Spiller&) = delete;
  Spiller& operator=(const Spiller&) = delete;
  ~Spiller();

  /// Memory was taken, or a caller waits for some: makes room if it is time to.
  void balance();
  /// Brings a vacated extent back; the caller has pinned it. `done` once, later. Errors:
  /// kResourceExhausted (no room by the deadline), kObjectLost.
  void restore(std::uint64_t extent, Deadline deadline, Restored done);
  /// The extent ended while it was on disk.
  void forget(std::uint64_t extent);
  void stop();

  std::uint64_t spilled_bytes() const { return memory_->table.vacated_bytes(); }
  std::uint64_t spills() const { return spills_; }
  std::uint64_t restores() const { return restores_; }
  /// ", 12 of at most 34 bytes spilled to /folder", with why it went no further if so.
  std::string describe() const;

 private:
  std::uint64_t wanted_bytes() const;
  bool may_write(std::uint64_t bytes) const;
  void park_one();
  void spill(const Extent& extent);
  void on_written(const Extent& extent, Status status);
  void on_room(std::uint64_t extent, ByteRange range);
  void on_read(std::uint64_t extent, ByteRange range, Status status);
  void finish_restore(std::uint64_t extent, const Status& status);
  void on_parked(std::uint64_t extent, std::shared_ptr<std::vector<std::byte>> bytes,
                 const Status& status);
  void retry_later();
  /// `work(folder, segment)` on the disk thread, then `done(spiller, status)` here.
  template <class Work, class Done>
  void on_disk_thread(Work work, Done done);

  const std::shared_ptr<StoreMemory> memory_;
  const std::shared_ptr<SpillFolder> folder_;  // jobs of the disk thread share it
  const SpillOptions options_;
  const AskHolders ask_holders_;
  WorkThread disk_thread_;
  std::vector<std::uint64_t>
      simulated_operations_;  // instead, in a simulation: those that are not over
  Timer retry_timer_;
  struct Restoring {
    std::uint64_t number = 0;  // of this attempt: one that failed may still stand in line
    std::vector<Restored> waiting;
    bool has_room = false;
  };
  using Parked = std::shared_ptr<std::vector<std::byte>>;

  std::unordered_map<std::uint64_t, Restoring> restoring_;
  std::unordered_map<std::uint64_t, Parked> parked_;  // off the disk, not back in the segment yet
  std::uint64_t restore_attempts_ = 0;
  bool parking_ = false;
  std::uint64_t writing_bytes_ = 0;
  std::uint64_t spills_ = 0;
  std::uint64_t restores_ = 0;
  Status failure_;  // of the last write
  Deadline failed_until_{};
  bool asking_ = false;
  Deadline retry_at_ = Deadline::max();
  bool stopped_ = false;
};

}  // namespace runtime::object_detail
