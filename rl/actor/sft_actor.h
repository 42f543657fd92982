// The actor around SftWorker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rl/actor/actor_profile.h"
#include "rl/actor/actors.h"
#include "rl/actor/snapshot_slot.h"
#include "rl/worker/sft_worker.h"
#include "runtime/runtime.h"

namespace rl {

/// One rank; see SftWorker for what its methods do and their errors.
class SftActor {
 public:
  static constexpr const char* kName = "Sft";

  /// Returns when all ranks of the group are there.
  static runtime::Result<std::unique_ptr<SftActor>> create(runtime::Runtime& runtime,
                                                           const WorkerSpec& spec);

  explicit SftActor(std::unique_ptr<SftWorker> worker) : worker_(std::move(worker)) {}

  runtime::Result<Metrics> update(const SupervisedBatch& batch, const SupervisedPlan& plan);
  runtime::Result<SupervisedSums> evaluate(const SupervisedBatch& batch,
                                           const std::vector<MicroBatch>& micro_batches);
  /// Paths travel as text.
  runtime::Result<std::vector<std::string>> save(const std::string& folder);
  /// Saving in two parts: see CriticActor.
  void take_snapshot() { snapshot_.take(*worker_); }
  runtime::Result<std::vector<std::string>> write_snapshot(const std::string& folder);
  runtime::Status load(const std::string& folder) { return worker_->load(folder); }
  profile::ProfileStarted begin_profile(const profile::ProfileRequest& request) {
    return begin_actor_profile(request);
  }
  profile::Recording end_profile() { return end_actor_profile(); }

 private:
  std::unique_ptr<SftWorker> worker_;
  SnapshotSlot snapshot_;
};

/// Makes the classes of the stages known; in main, before Runtime::run().
void register_stage_actors(runtime::Runtime& runtime);

}  // namespace rl
