// The actor around PreferenceWorker.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rl/actor/actor_values.h"
#include "rl/actor/trained_actor.h"
#include "rl/worker/preference_worker.h"
#include "runtime/runtime.h"

namespace rl {

/// One rank; see PreferenceWorker for what its methods do and their errors.
class PreferenceActor : public TrainedActor<PreferenceWorker> {
 public:
  static constexpr const char* kName = "Preference";

  /// Returns when all ranks of the group are there.
  static runtime::Result<std::unique_ptr<PreferenceActor>> create(runtime::Runtime& runtime,
                                                                  const WorkerSpec& spec);

  explicit PreferenceActor(std::unique_ptr<PreferenceWorker> worker)
      : TrainedActor(std::move(worker)) {}

  runtime::Result<Metrics> update(const PreferenceBatch& batch, const PreferencePasses& passes,
                                  const PreferenceTotals& totals, double learning_rate);
  runtime::Result<Metrics> evaluate(const PreferenceBatch& batch, const PreferencePasses& passes,
                                    const PreferenceTotals& totals, std::int64_t batch_rows);
};

}  // namespace rl
