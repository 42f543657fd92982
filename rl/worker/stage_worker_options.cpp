#include "rl/worker/stage_worker_options.h"

namespace rl {

runtime::Result<StageWorkerOptions> StageWorkerOptions::from_config(const Config& config,
                                                                    const std::string& device) {
  ConfigReader read(config);
  StageWorkerOptions options;
  options.seed = static_cast<std::uint64_t>(read.find_int("trainer.seed").value_or(0));
  options.recompute_layers = read.get_bool("model.enable_gradient_checkpointing");
  if (!read.status().ok()) return read.status();
  read.take(options.bf16, computes_in_bf16(config, "engine.dtype", device));
  read.take(options.learner, learner_from_config(config, kStageRole));
  read.take(options.adapter, AdapterOptions::from_config(config, kStageModel));
  if (!read.status().ok()) return read.status();
  return options;
}

}  // namespace rl
