// The actor around SftWorker.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rl/actor/actor_values.h"
#include "rl/actor/trained_actor.h"
#include "rl/worker/sft_worker.h"
#include "runtime/runtime.h"

namespace rl {

/// One rank; see SftWorker for what its methods do and their errors.
class SftActor : public TrainedActor<SftWorker> {
 public:
  static constexpr const char* kName = "Sft";

  /// Returns when all ranks of the group are there.
  static runtime::Result<std::unique_ptr<SftActor>> create(runtime::Runtime& runtime,
                                                           const WorkerSpec& spec);

  explicit SftActor(std::unique_ptr<SftWorker> worker) : TrainedActor(std::move(worker)) {}

  runtime::Result<Metrics> update(const SupervisedBatch& batch, const SupervisedPlan& plan);
  runtime::Result<SupervisedSums> evaluate(const SupervisedBatch& batch,
                                           const std::vector<MicroBatch>& micro_batches);
};

/// Makes the classes of the stages known; in main, before Runtime::run().
void register_stage_actors(runtime::Runtime& runtime);

}  // namespace rl
