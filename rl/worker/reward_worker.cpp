#include "rl/worker/reward_worker.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "rl/worker/reward_model.h"
#include "runtime/core/json.h"

namespace rl {
namespace {

using runtime::Result;

runtime::Status check_tasks(const RolloutBatch& batch, const std::vector<RewardTask>& tasks) {
  const runtime::Status valid = batch.validate();
  if (!valid.ok()) return valid;
  if (static_cast<std::int64_t>(tasks.size()) != batch.prompts.rows()) {
    return runtime::invalid_argument("reward: " + std::to_string(tasks.size()) + " tasks for " +
                                     std::to_string(batch.prompts.rows()) + " prompts");
  }
  return {};
}

// extra_info with what is known of this one sample.
std::string with_notes(const std::string& extra_info, const std::string& notes) {
  nlohmann::ordered_json all = runtime::parse_json<nlohmann::ordered_json>(extra_info);
  const nlohmann::ordered_json more = runtime::parse_json<nlohmann::ordered_json>(notes);
  if (!all.is_object()) all = nlohmann::ordered_json::object();
  if (more.is_object()) all.update(more);
  return all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// What a user's agent loop said of its sample by itself.
std::optional<Score> known_score(const std::string& notes) {
  const nlohmann::ordered_json all = runtime::parse_json<nlohmann::ordered_json>(notes);
  if (!all.is_object()) return std::nullopt;
  Score score;
  if (const auto why = all.find("agent_failure"); why != all.end()) {
    score.failure = ScoreFailure::kError;
    score.message = why->is_string() ? why->get<std::string>() : why->dump();
    return score;
  }
  const auto value = all.find("agent_score");
  if (value == all.end() || !value->is_number()) return std::nullopt;
  score.value = value->get<double>();
  return score;
}

}  // namespace

Result<RewardWorker> RewardWorker::create(const Config& config, const std::filesystem::path& model,
                                          std::int64_t workers, const TransformerOptions& options,
                                          std::unique_ptr<Communicator> ranks) {
  Result<Tokenizer> tokenizer = Tokenizer::load(model);
  if (!tokenizer.ok()) return tokenizer.status();
  const Result<std::optional<bool>> offload =
      config.find_bool("reward_model.model.fsdp_config.param_offload");
  if (!offload.ok()) return offload.status();
  Result<std::unique_ptr<RewardFunction>> reward = RewardFunction::from_config(
      config, workers, /*start=*/true,
      reward_model_loader(options, offload->value_or(false), {.all = ranks.get()}));
  if (!reward.ok()) return reward.status();
  return RewardWorker(std::move(*tokenizer), std::move(*reward), std::move(ranks));
}

ScoreRequest RewardWorker::request_of(const RewardTask& task,
                                      std::span<const std::int32_t> response) const {
  return {.data_source = task.data_source,
          .response = tokenizer_.decode(response, /*skip_special_tokens=*/true),
          .ground_truth = task.ground_truth,
          .extra_info = task.extra_info,
          .where = task.where,
          .prompt = task.prompt,
          .has_ground_truth = task.has_ground_truth,
          .ground_truth_is_json = task.ground_truth_is_json};
}

void RewardWorker::prepare(const Ragged<std::int32_t>& responses,
                           const std::vector<RewardTask>& tasks) {
  if (!responses.consistent() || responses.rows() != static_cast<std::int64_t>(tasks.size()))
    return;  // score() will say so
  std::vector<ScoreRequest> requests;
  for (std::int64_t i = 0; i < responses.rows(); ++i)
    requests.push_back(request_of(tasks[static_cast<std::size_t>(i)], responses.row(i)));
  reward_->prepare(requests);
}

Result<RewardReport> RewardWorker::score(const RolloutBatch& batch,
                                         const std::vector<RewardTask>& tasks) {
  const runtime::Status valid = check_tasks(batch, tasks);
  if (!valid.ok()) return valid;
  std::vector<ScoreRequest> requests;
  std::vector<std::int64_t> lengths;
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    const auto at = static_cast<std::size_t>(sample);
    ScoreRequest& request = requests.emplace_back(request_of(
        tasks[static_cast<std::size_t>(batch.prompt_of[at])], batch.responses.row(sample)));
    if (!batch.notes.empty()) {
      request.extra_info = with_notes(request.extra_info, batch.notes[at]);
      request.known = known_score(batch.notes[at]);
    }
    lengths.push_back(batch.responses.row_size(sample));
  }
  return reward_->score(requests, lengths);
}

Result<std::vector<SampleText>> RewardWorker::texts(const RolloutBatch& batch,
                                                    const std::vector<RewardTask>& tasks,
                                                    const std::vector<double>& scores,
                                                    std::int64_t count) const {
  const runtime::Status valid = check_tasks(batch, tasks);
  if (!valid.ok()) return valid;
  if (static_cast<std::int64_t>(scores.size()) != batch.samples()) {
    return runtime::invalid_argument("reward: " + std::to_string(scores.size()) + " scores for " +
                                     std::to_string(batch.samples()) + " samples");
  }
  std::vector<SampleText> texts;
  TokenStream stream(tokenizer_, /*skip_special_tokens=*/true);
  auto next = batch.logprobs.begin();
  for (std::int64_t sample = 0; sample < std::min(count, batch.samples()); ++sample) {
    const std::int32_t prompt = batch.prompt_of[static_cast<std::size_t>(sample)];
    texts.push_back(
        {.prompt = tokenizer_.decode(batch.prompts.row(prompt), /*skip_special_tokens=*/true),
         .response = tokenizer_.decode(batch.responses.row(sample), /*skip_special_tokens=*/true),
         .ground_truth = tasks[static_cast<std::size_t>(prompt)].ground_truth,
         .score = scores[static_cast<std::size_t>(sample)],
         .ground_truth_is_json = tasks[static_cast<std::size_t>(prompt)].ground_truth_is_json});
    std::vector<std::string>& tokens = texts.back().tokens;
    for (const std::int32_t id : batch.responses.row(sample)) tokens.push_back(stream.push(id));
    const std::string rest = stream.finish();
    if (!tokens.empty()) tokens.back() += rest;
    const std::span<const std::uint8_t> mask = batch.mask_of(sample);
    texts.back().mask.assign(mask.begin(), mask.end());
    for (std::size_t i = 0; i < tokens.size(); ++i)
      texts.back().logprobs.push_back(mask.empty() || mask[i] != 0 ? *next++ : 0.0F);
  }
  return texts;
}

}  // namespace rl
