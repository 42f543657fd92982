#include "rl/worker/reward_worker.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rl {
namespace {

using runtime::Result;

runtime::Status check(const RolloutBatch& batch, const std::vector<RewardTask>& tasks) {
  const runtime::Status valid = batch.validate();
  if (!valid.ok()) return valid;
  if (static_cast<std::int64_t>(tasks.size()) != batch.prompts.rows()) {
    return runtime::invalid_argument("reward: " + std::to_string(tasks.size()) + " tasks for " + std::to_string(batch.prompts.rows()) + " prompts");
  }
  return {};
}

}  // namespace

Result<RewardWorker> RewardWorker::create(const Config& config, const std::filesystem::path& model) {
  Result<Tokenizer> tokenizer = Tokenizer::load(model);
  if (!tokenizer.ok()) return tokenizer.status();
  Result<RuleReward> reward = RuleReward::from_config(config);
  if (!reward.ok()) return reward.status();
  return RewardWorker(std::move(*tokenizer), std::move(*reward));
}

Result<double> RewardWorker::score_sample(const RolloutBatch& batch, const std::vector<RewardTask>& tasks, std::int64_t sample) const {
  const RewardTask& task = tasks[static_cast<std::size_t>(batch.prompt_of[static_cast<std::size_t>(sample)])];
  const std::string response = tokenizer_.decode(batch.responses.row(sample), /*skip_special_tokens=*/true);
  const Result<double> score = reward_.compute(task.data_source, response, task.ground_truth);
  if (!score.ok()) return score.status().with_context(task.where);
  if (!std::isfinite(*score)) return runtime::internal_error(task.where + ": the reward is not a finite number");
  return *score;
}

Result<std::vector<double>> RewardWorker::score(const RolloutBatch& batch, const std::vector<RewardTask>& tasks) const {
  const runtime::Status valid = check(batch, tasks);
  if (!valid.ok()) return valid;
  std::vector<double> scores;
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    const Result<double> score = score_sample(batch, tasks, sample);
    if (!score.ok()) return score.status();
    scores.push_back(*score);
  }
  return scores;
}

Result<std::vector<SampleText>> RewardWorker::texts(const RolloutBatch& batch, const std::vector<RewardTask>& tasks, std::int64_t count) const {
  const runtime::Status valid = check(batch, tasks);
  if (!valid.ok()) return valid;
  std::vector<SampleText> texts;
  for (std::int64_t sample = 0; sample < std::min(count, batch.samples()); ++sample) {
    const std::int32_t prompt = batch.prompt_of[static_cast<std::size_t>(sample)];
    const Result<double> score = score_sample(batch, tasks, sample);
    if (!score.ok()) return score.status();
    texts.push_back({.prompt = tokenizer_.decode(batch.prompts.row(prompt), /*skip_special_tokens=*/true),
                     .response = tokenizer_.decode(batch.responses.row(sample), /*skip_special_tokens=*/true),
                     .ground_truth = tasks[static_cast<std::size_t>(prompt)].ground_truth,
                     .score = *score});
  }
  return texts;
}

}  // namespace rl
