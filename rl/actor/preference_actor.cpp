#include "rl/actor/preference_actor.h"

#include <utility>

#include "rl/actor/actor_setup.h"
#include "rl/actor/peak_memory.h"
#include "rl/worker/stage_worker_options.h"
#include "rl/worker/toy_model.h"

namespace rl {

using runtime::Result;

Result<std::unique_ptr<PreferenceActor>> PreferenceActor::create(runtime::Runtime& runtime,
                                                                 const WorkerSpec& spec) {
  const Result<Config> config = parse_config(spec);
  if (!config.ok()) return config.status();
  const Result<StageWorkerOptions> stage = StageWorkerOptions::from_config(*config, spec.device);
  if (!stage.ok()) return stage.status();
  const Result<PreferenceObjective> objective = PreferenceObjective::from_config(*config);
  if (!objective.ok()) return objective.status();
  PreferenceWorkerOptions options{.model = spec.model,
                                  .reference = {},
                                  .threads = spec.threads,
                                  .device = spec.device,
                                  .objective = *objective,
                                  .learner = stage->learner,
                                  .adapter = stage->adapter,
                                  .recompute_layers = stage->recompute_layers,
                                  .bf16 = stage->bf16,
                                  .seed = stage->seed};
  place_adapter(spec, options.adapter);
  const Result<FrozenSharding> sharding = frozen_sharding_from_config(*config, kStageReferenceRole);
  if (!sharding.ok()) return sharding.status();
  options.reference_sharding = *sharding;
  if (objective->needs_reference() && config->find_string(kReferencePath).value_or(std::nullopt)) {
    Result<std::filesystem::path> reference = resolve_model(*config, kReferencePath, stage->seed);
    if (!reference.ok()) return reference.status();
    options.reference = std::move(*reference);
  }
  if (const runtime::Status team = check_team(*config, kStageRole, spec); !team.ok()) return team;
  Result<TrainingRanks> ranks =
      join_group(runtime, spec, options.learner.sharing, options.learner.zero);
  if (!ranks.ok()) return ranks.status();
  Result<std::unique_ptr<PreferenceWorker>> worker =
      PreferenceWorker::create(options, std::move(*ranks));
  if (!worker.ok()) return worker.status();
  return std::make_unique<PreferenceActor>(std::move(*worker));
}

Result<Metrics> PreferenceActor::update(const PreferenceBatch& batch,
                                        const PreferencePasses& passes,
                                        const PreferenceTotals& totals, double learning_rate) {
  const CallSpan span("update");
  return with_peaks(worker().update(batch, passes, totals, learning_rate),
                    worker().learner().model());
}

Result<Metrics> PreferenceActor::evaluate(const PreferenceBatch& batch,
                                          const PreferencePasses& passes,
                                          const PreferenceTotals& totals, std::int64_t batch_rows) {
  const CallSpan span("evaluate");
  return worker().evaluate(batch, passes, totals, batch_rows);
}

}  // namespace rl
