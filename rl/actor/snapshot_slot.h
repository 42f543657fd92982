// SnapshotSlot: a worker's state between the call that copies it and the one that writes it while
// the worker goes on.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "rl/actor/actor_profile.h"
#include "rl/checkpoint/idle_thread.h"
#include "rl/optim/learner_snapshot.h"
#include "runtime/core/result.h"

namespace rl {

/// The group of calls that run concurrently with the others.
inline constexpr const char* kSavingCalls = "saving";

/// What take() leaves for write(), which another thread calls. The memory of the copy is kept for
/// the next one: fresh memory costs a step more than the copying.
class SnapshotSlot {
 public:
  /// A copy of the state of now, in the place of one that was not written.
  template <class Worker>
  void take(Worker& worker) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<LearnerSnapshot>& snapshot = taken_ ? taken_ : spare_;
    worker.snapshot(snapshot);
    if (!taken_) taken_ = std::move(spare_);
  }

  /// Gives the memory of a copy that was written back.
  void drop_spare() {
    const std::lock_guard lock(mutex_);
    spare_.reset();
  }

  /// Writes what was taken last, in the time that training leaves. kInternal: nothing was taken
  /// since; else as Worker::write.
  template <class Worker>
  runtime::Result<std::vector<std::filesystem::path>> write(const Worker& worker,
                                                            const std::string& folder) {
    const CallSpan span("write_snapshot");
    std::unique_ptr<LearnerSnapshot> snapshot;
    {
      const std::lock_guard lock(mutex_);
      snapshot = std::move(taken_);
    }
    if (!snapshot) return runtime::internal_error("no snapshot was taken to be written");
    runtime::Result<std::vector<std::filesystem::path>> files =
        run_when_idle([&] { return worker.write(*snapshot, folder); });
    const std::lock_guard lock(mutex_);
    spare_ = std::move(snapshot);
    return files;
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<LearnerSnapshot> taken_;
  std::unique_ptr<LearnerSnapshot> spare_;
};

}  // namespace rl
