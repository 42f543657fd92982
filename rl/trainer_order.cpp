// Orders of the data that follow how training goes: curricula by difficulty, classes of the user's.
#include <utility>

#include "rl/train/worker_lists.h"
#include "rl/trainer.h"

namespace rl {

using runtime::Status;

Status Trainer::choose_order(PromptFeedOptions& feed) const {
  const runtime::Result<std::optional<AdaptiveOrderOptions>> adaptive = AdaptiveOrderOptions::from_config(config_);
  if (!adaptive.ok()) return adaptive.status();
  const runtime::Result<PythonSampler> sampler = PythonSampler::from_config(config_);
  if (!sampler.ok()) return sampler.status();
  feed.adaptive = *adaptive;
  feed.python_sampler = *sampler;
  if (!feed.adaptive && feed.python_sampler.empty()) return {};
  const std::string key = feed.adaptive ? "data.adarft.enable" : "data.sampler.class_path";
  if (feed.adaptive && !feed.python_sampler.empty()) return runtime::invalid_argument("data.adarft.enable and data.sampler.class_path both say which rows come; leave one of the two out");
  // These draw before it is known what became of the rows before.
  for (const auto& [other, is_on] : {std::pair("algorithm.filter_groups.enable=true", options_.filter_groups.enabled), std::pair("actor_rollout_ref.hybrid_engine=false", options_.rollout_workers.has_value()),
                                   std::pair("trainer.v1.trainer_mode", options_.partial_rollouts.has_value())}) {
    if (is_on) return runtime::unimplemented(key + " with " + other + ": prompts are drawn before the scores of those before them are known; leave one of the two out");
  }
  const nlohmann::ordered_json* weights = config_.find("data.train_weights");
  if (weights != nullptr && !weights->is_null() && !weights->empty()) return runtime::invalid_argument(key + " and data.train_weights both say which rows come; leave one of the two out");
  return {};
}

// What became of each sample of this step, by the row that it answers. Replayed samples of a sample store come behind them.
Status Trainer::tell_order(const StepSamples& samples) {
  if (!feed_->learns()) return {};
  std::vector<RowOutcome> outcomes;
  for (std::size_t worker = 0; worker < samples.shards.size(); ++worker) {
    std::size_t sample = 0;
    for (std::size_t i = 0; i < samples.shards[worker].prompts.size(); ++i) {
      const auto prompt = static_cast<std::size_t>(samples.shards[worker].prompts[i]);
      for (std::int64_t k = 0; k < samples.samples_of[worker][i]; ++k, ++sample) {
        if (prompt >= samples.rows.size()) continue;
        outcomes.push_back({.row = samples.rows[prompt], .score = samples.scores[worker][sample], .response_tokens = samples.summaries[worker].response_tokens[sample]});
      }
    }
  }
  return feed_->learn(outcomes);
}

}  // namespace rl
