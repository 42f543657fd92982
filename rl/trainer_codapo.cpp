// CoDaPO's two phases: after each step on prompts of the data comes one on fresh samples for those
// of them that have most to teach.
#include <algorithm>
#include <cmath>
#include <utility>

#include "rl/algo/codapo.h"
#include "rl/train/worker_lists.h"
#include "rl/trainer.h"

namespace rl {

using runtime::Result;

// Where the reward says nothing under "acc", the score is the accuracy, as verl's dapo reward
// manager has it.
std::vector<std::string> Trainer::component_keys() const {
  if (options_.estimator == AdvantageEstimator::kGdpo) return options_.gdpo_keys;
  if (options_.estimator == AdvantageEstimator::kCodapo) return {options_.codapo.accuracy_key};
  return {};
}

std::vector<float> Trainer::credit_by_value(const StepSamples& samples,
                                            const std::vector<std::int64_t>& groups,
                                            Credit& credit) {
  std::vector<std::uint8_t> right;
  for (const std::vector<double>& of_sample : join<std::vector<double>>(samples.components))
    right.push_back(of_sample.front() == 1.0 ? 1 : 0);
  const std::vector<double> values = codapo_values(
      join<float>(select(samples.summaries, &RolloutSummary::mean_logprobs)), right, groups);
  const bool focused = !state_.focus.empty();
  state_.focus.clear();
  credit.metrics["codapo/is_focused_step"] = focused ? 1.0 : 0.0;
  if (!focused) {
    const std::vector<std::int64_t> prompts =
        codapo_focus(values, groups, options_.codapo.top_k, options_.batch_prompts);
    // Means over prompts, each as often as it has samples: as often as the others, unless some had
    // no score.
    double sum = 0.0, selected = 0.0;
    for (const double value : values) sum += value;
    const std::size_t kinds =
        std::min(prompts.size(), static_cast<std::size_t>(options_.codapo.top_k));
    for (std::size_t i = 0; i < kinds; ++i)
      selected += values[static_cast<std::size_t>(
          std::find(groups.begin(), groups.end(), prompts[i]) - groups.begin())];
    credit.metrics["codapo/value/mean"] =
        values.empty() ? 0.0 : sum / static_cast<double>(values.size());
    credit.metrics["codapo/selected_value/mean"] =
        kinds == 0 ? 0.0 : selected / static_cast<double>(kinds);
    for (const std::int64_t prompt : prompts)
      state_.focus.push_back(samples.rows[static_cast<std::size_t>(prompt)]);
  }
  return codapo_advantages(join<float>(credit.rewards), values, groups,
                           options_.codapo.weight_offset, options_.normalize_by_std);
}

Result<StepPrompts> Trainer::next_prompts(std::int64_t step, std::int64_t round) {
  return state_.focus.empty() ? feed_->next(step, round) : feed_->of_rows(state_.focus, step);
}

}  // namespace rl
