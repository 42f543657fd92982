#include "rl/actor/sft_actor.h"

#include <utility>

#include "rl/actor/actor_setup.h"
#include "rl/actor/peak_memory.h"
#include "rl/actor/preference_actor.h"
#include "rl/worker/stage_worker_options.h"

namespace rl {

using runtime::Result;

Result<std::unique_ptr<SftActor>> SftActor::create(runtime::Runtime& runtime,
                                                   const WorkerSpec& spec) {
  const Result<Config> config = parse_config(spec);
  if (!config.ok()) return config.status();
  const Result<StageWorkerOptions> stage = StageWorkerOptions::from_config(*config, spec.device);
  if (!stage.ok()) return stage.status();
  const Result<std::optional<TeacherOptions>> teacher = TeacherOptions::from_config(*config);
  if (!teacher.ok()) return teacher.status();
  SftWorkerOptions options{.model = spec.model,
                           .threads = spec.threads,
                           .device = spec.device,
                           .learner = stage->learner,
                           .adapter = stage->adapter,
                           .recompute_layers = stage->recompute_layers,
                           .bf16 = stage->bf16,
                           .teacher = *teacher};
  place_adapter(spec, options.adapter);
  if (const runtime::Status team = check_team(*config, kStageRole, spec); !team.ok()) return team;
  Result<TrainingRanks> ranks =
      join_group(runtime, spec, options.learner.sharing, options.learner.zero);
  if (!ranks.ok()) return ranks.status();
  Result<std::unique_ptr<SftWorker>> worker = SftWorker::create(options, std::move(*ranks));
  if (!worker.ok()) return worker.status();
  return std::make_unique<SftActor>(std::move(*worker));
}

Result<Metrics> SftActor::update(const SupervisedBatch& batch, const SupervisedPlan& plan) {
  const CallSpan span("update");
  return with_peaks(worker().update(batch, plan), worker().learner().model());
}

Result<SupervisedSums> SftActor::evaluate(const SupervisedBatch& batch,
                                          const std::vector<MicroBatch>& micro_batches) {
  const CallSpan span("evaluate");
  return worker().evaluate(batch, micro_batches);
}

void register_stage_actors(runtime::Runtime& runtime) {
  register_trained_actor<SftActor>(runtime, &SftActor::update, &SftActor::evaluate);
  register_trained_actor<PreferenceActor>(runtime, &PreferenceActor::update,
                                          &PreferenceActor::evaluate);
}

}  // namespace rl
