// Orders of the data that follow how training goes: curricula by difficulty, classes of the user's.
#include <utility>

#include "rl/train/worker_lists.h"
#include "rl/trainer.h"

namespace rl {

using runtime::Status;

// What became of each sample of this step, by the row that it answers. Replayed samples of a sample
// store come behind them.
Status Trainer::tell_order(const StepSamples& samples) {
  if (!feed_->learns()) return {};
  std::vector<RowOutcome> outcomes;
  for (std::size_t worker = 0; worker < samples.shards.size(); ++worker) {
    std::size_t sample = 0;
    for (std::size_t i = 0; i < samples.shards[worker].prompts.size(); ++i) {
      const auto prompt = static_cast<std::size_t>(samples.shards[worker].prompts[i]);
      for (std::int64_t k = 0; k < samples.samples_of[worker][i]; ++k, ++sample) {
        if (prompt >= samples.rows.size()) continue;
        outcomes.push_back({.row = samples.rows[prompt],
                            .score = samples.scores[worker][sample],
                            .response_tokens = samples.summaries[worker].response_tokens[sample]});
      }
    }
  }
  return feed_->learn(outcomes);
}

}  // namespace rl
