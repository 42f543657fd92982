#include "rl/worker/reward_worker.h"

#include <algorithm>
#include <utility>

#include "rl/worker/reward_model.h"

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

Result<RewardWorker> RewardWorker::create(const Config& config, const std::filesystem::path& model, std::int64_t workers, const TransformerOptions& options) {
  Result<Tokenizer> tokenizer = Tokenizer::load(model);
  if (!tokenizer.ok()) return tokenizer.status();
  Result<std::unique_ptr<RewardFunction>> reward = RewardFunction::from_config(config, workers, /*start=*/true, reward_model_loader(options));
  if (!reward.ok()) return reward.status();
  return RewardWorker(std::move(*tokenizer), std::move(*reward));
}

Result<RewardReport> RewardWorker::score(const RolloutBatch& batch, const std::vector<RewardTask>& tasks) {
  const runtime::Status valid = check(batch, tasks);
  if (!valid.ok()) return valid;
  std::vector<ScoreRequest> requests;
  std::vector<std::int64_t> lengths;
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    const RewardTask& task = tasks[static_cast<std::size_t>(batch.prompt_of[static_cast<std::size_t>(sample)])];
    requests.push_back({.data_source = task.data_source,
                        .response = tokenizer_.decode(batch.responses.row(sample), /*skip_special_tokens=*/true),
                        .ground_truth = task.ground_truth,
                        .extra_info = task.extra_info,
                        .where = task.where,
                        .prompt = task.prompt});
    lengths.push_back(batch.responses.row_size(sample));
  }
  return reward_->score(requests, lengths);
}

Result<std::vector<SampleText>> RewardWorker::texts(const RolloutBatch& batch, const std::vector<RewardTask>& tasks, const std::vector<double>& scores, std::int64_t count) const {
  const runtime::Status valid = check(batch, tasks);
  if (!valid.ok()) return valid;
  if (static_cast<std::int64_t>(scores.size()) != batch.samples()) {
    return runtime::invalid_argument("reward: " + std::to_string(scores.size()) + " scores for " + std::to_string(batch.samples()) + " samples");
  }
  std::vector<SampleText> texts;
  TokenStream stream(tokenizer_, /*skip_special_tokens=*/true);
  for (std::int64_t sample = 0; sample < std::min(count, batch.samples()); ++sample) {
    const std::int32_t prompt = batch.prompt_of[static_cast<std::size_t>(sample)];
    texts.push_back({.prompt = tokenizer_.decode(batch.prompts.row(prompt), /*skip_special_tokens=*/true),
                     .response = tokenizer_.decode(batch.responses.row(sample), /*skip_special_tokens=*/true),
                     .ground_truth = tasks[static_cast<std::size_t>(prompt)].ground_truth,
                     .score = scores[static_cast<std::size_t>(sample)]});
    std::vector<std::string>& tokens = texts.back().tokens;
    for (const std::int32_t id : batch.responses.row(sample)) tokens.push_back(stream.push(id));
    const std::string rest = stream.finish();
    if (!tokens.empty()) tokens.back() += rest;
    const auto first = batch.logprobs.begin() + batch.responses.offsets[static_cast<std::size_t>(sample)];
    texts.back().logprobs.assign(first, first + batch.responses.row_size(sample));
  }
  return texts;
}

}  // namespace rl
