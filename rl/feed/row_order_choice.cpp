#include "rl/feed/row_order_choice.h"

#include <string>
#include <utility>

namespace rl {

runtime::Result<RowOrderChoice> RowOrderChoice::from_config(const Config& config,
                                                            const EarlyDraws& draws) {
  const runtime::Result<std::optional<AdaptiveOrderOptions>> adaptive =
      AdaptiveOrderOptions::from_config(config);
  if (!adaptive.ok()) return adaptive.status();
  const runtime::Result<PythonSampler> sampler = PythonSampler::from_config(config);
  if (!sampler.ok()) return sampler.status();
  RowOrderChoice choice{.adaptive = *adaptive, .python_sampler = *sampler};
  if (!choice.adaptive && choice.python_sampler.empty()) return choice;
  const std::string key = choice.adaptive ? "data.adarft.enable" : "data.sampler.class_path";
  if (choice.adaptive && !choice.python_sampler.empty())
    return runtime::invalid_argument(
        "data.adarft.enable and data.sampler.class_path both choose the rows; set only one of the "
        "two");
  for (const auto& [other, is_on] :
       {std::pair("algorithm.filter_groups.enable=true", draws.filters_groups),
        std::pair("actor_rollout_ref.hybrid_engine=false", draws.has_rollout_workers),
        std::pair("trainer.v1.trainer_mode", draws.is_partial)}) {
    if (is_on)
      return runtime::unimplemented(key + " with " + other +
                                    ": prompts are chosen before the scores of earlier ones "
                                    "are known; set only one of the two");
  }
  const nlohmann::ordered_json* weights = config.find("data.train_weights");
  if (weights != nullptr && !weights->is_null() && !weights->empty())
    return runtime::invalid_argument(
        key + " and data.train_weights both choose the rows; set only one of the two");
  return choice;
}

}  // namespace rl
