// TrainedActor: the calls that all actors around learning workers have: saving, loading, watching.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rl/actor/actor_profile.h"
#include "rl/actor/actor_setup.h"
#include "rl/actor/snapshot_slot.h"
#include "rl/comm/pulse.h"
#include "runtime/core/result.h"
#include "runtime/runtime.h"

namespace rl {

/// Calls that are answered while the actor is in another one: where its rank stands, and the end of
/// what it does with the others.
inline constexpr const char* kWatchCalls = "watch";

/// Saves and loads what a Worker has learned; see there for errors. Paths travel as text.
template <class Worker>
class TrainedActor : public ProfiledActor {
 public:
  runtime::Result<std::vector<std::string>> save(const std::string& folder) {
    const CallSpan span("save");
    return as_text(worker_->save(folder));
  }
  /// Before save() or take_snapshot(), on all ranks. True: each of them writes its part, of its
  /// present state, into a folder below `root`. False: rank 0 alone writes, and is ready for it.
  /// See Learner.
  runtime::Result<bool> begin_save(const std::string& root) {
    const runtime::Result<bool> in_parts = worker_->agree_on_parts(root);
    if (!in_parts.ok() || *in_parts) return in_parts;
    const runtime::Status collected = collect_state();
    if (!collected.ok()) return collected;
    return in_parts;
  }
  runtime::Status collect_state() {
    // What is collected becomes a part of the next copy.
    if (worker_->learner().is_sharded()) snapshot_.drop_spare();
    return worker_->collect_state();
  }
  /// Saving in two parts: take_snapshot() takes a copy in the line of calls, so that it has the
  /// present state. write_snapshot() writes it during the calls that follow, and forgets it.
  void take_snapshot() { snapshot_.take(*worker_); }
  runtime::Result<std::vector<std::string>> write_snapshot(const std::string& folder) {
    return as_text(snapshot_.write(*worker_, folder));
  }
  runtime::Status load(const std::string& folder) { return worker_->load(folder); }

  /// See Learner. Answered while the actor is in another call.
  Pulse pulse() const { return worker_->learner().pulse(); }
  void give_up(const std::string& why) const {
    worker_->learner().abort(runtime::deadline_exceeded(why));
  }

 protected:
  explicit TrainedActor(std::unique_ptr<Worker> worker) : worker_(std::move(worker)) {}

  Worker& worker() { return *worker_; }

 private:
  std::unique_ptr<Worker> worker_;
  SnapshotSlot snapshot_;
};

/// Makes class T known with `methods` and those that it has from TrainedActor.
template <class T, class... Methods>
void register_trained_actor(runtime::Runtime& runtime, Methods... methods) {
  runtime.register_actor<T>(
      T::kName, methods..., &T::save, &T::load, &T::begin_save, &T::collect_state,
      &T::take_snapshot, &T::begin_profile, &T::end_profile,
      runtime::method(&T::write_snapshot, {.concurrency_group = kSavingCalls}),
      runtime::method(&T::pulse, {.concurrency_group = kWatchCalls}),
      runtime::method(&T::give_up, {.concurrency_group = kWatchCalls}));
}

}  // namespace rl
