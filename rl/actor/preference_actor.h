// The actor around PreferenceWorker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rl/actor/actor_profile.h"
#include "rl/actor/actors.h"
#include "rl/actor/snapshot_slot.h"
#include "rl/worker/preference_worker.h"
#include "runtime/runtime.h"

namespace rl {

/// One rank; see PreferenceWorker for what its methods do and their errors.
class PreferenceActor {
 public:
  static constexpr const char* kName = "Preference";

  /// Returns when all ranks of the group are there.
  static runtime::Result<std::unique_ptr<PreferenceActor>> create(runtime::Runtime& runtime,
                                                                  const WorkerSpec& spec);

  explicit PreferenceActor(std::unique_ptr<PreferenceWorker> worker) : worker_(std::move(worker)) {}

  runtime::Result<Metrics> update(const PreferenceBatch& batch, const PreferencePasses& passes,
                                  const PreferenceTotals& totals, double learning_rate);
  runtime::Result<Metrics> evaluate(const PreferenceBatch& batch, const PreferencePasses& passes,
                                    const PreferenceTotals& totals, std::int64_t batch_rows);
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
  std::unique_ptr<PreferenceWorker> worker_;
  SnapshotSlot snapshot_;
};

}  // namespace rl
