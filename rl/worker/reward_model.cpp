#include "rl/worker/reward_model.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "rl/batch/batch_plan.h"
#include "rl/model/model_config.h"
#include "rl/worker/passes.h"
#include "runtime/core/json.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

Status check_head(const ModelConfig& config, const std::filesystem::path& model) {
  if (config.output_heads.size() == 1) return {};
  return invalid_argument(
      model.string() +
      ": this is not a reward model, which has its own head instead of an output layer "
      "(\"architectures\" in its config.json says ...ForSequenceClassification or "
      "...ForTokenClassification)");
}

}  // namespace

Result<RewardModelText> RewardModelText::load(const std::filesystem::path& model) {
  Result<Tokenizer> tokenizer = Tokenizer::load(model);
  if (!tokenizer.ok()) return tokenizer.status();
  Result<ChatTemplates> chat_template = ChatTemplates::parse(tokenizer->chat_templates());
  if (!chat_template.ok())
    return chat_template.status().with_context("the reward model's chat template");
  return RewardModelText(std::move(*tokenizer), std::move(*chat_template));
}

Result<std::vector<std::int32_t>> RewardModelText::ids(const ScoreRequest& request) const {
  ordered_json prompt = runtime::parse_json<ordered_json>(request.prompt);
  if (prompt.is_array()) return encode_chat(std::move(prompt), request.response);
  if (!prompt.is_string())
    return invalid_argument("the prompt is neither text nor a list of messages");
  Result<std::vector<std::int32_t>> ids =
      tokenizer_.encode(prompt.get<std::string>(), /*add_special_tokens=*/true);
  if (!ids.ok()) return ids;
  const Result<std::vector<std::int32_t>> response =
      tokenizer_.encode(request.response, /*add_special_tokens=*/false);
  if (!response.ok()) return response;
  ids->insert(ids->end(), response->begin(), response->end());
  if (const auto end = tokenizer_.eos_id()) ids->push_back(*end);
  return ids;
}

Result<std::vector<std::int32_t>> RewardModelText::encode_chat(ordered_json messages,
                                                               const std::string& response) const {
  if (chat_template_.empty())
    return invalid_argument(
        "the prompt is a chat, and the reward model has no chat template: put a "
        "chat_template.jinja into its folder");
  messages.push_back({{"role", "assistant"}, {"content", response}});
  ordered_json variables = ordered_json::object();
  for (const auto& [name, text] : tokenizer_.special_token_texts()) variables[name] = text;
  variables["messages"] = std::move(messages);
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = false;
  Result<std::string> text = chat_template_.render_chat(variables);
  if (!text.ok()) return text.status().with_context("the reward model's chat template");
  // The tokenizer may begin every text with the token that the template wrote: it is wanted once.
  const auto begin = tokenizer_.bos_id();
  const std::string begin_text = begin ? tokenizer_.id_to_token(*begin) : std::string();
  const bool written = !begin_text.empty() && text->starts_with(begin_text);
  Result<std::vector<std::int32_t>> ids = tokenizer_.encode(
      written ? std::string_view(*text).substr(begin_text.size()) : std::string_view(*text),
      /*add_special_tokens=*/true);
  if (ids.ok() && written && (ids->empty() || ids->front() != *begin))
    ids->insert(ids->begin(), *begin);
  return ids;
}

RewardModelScorer::RewardModelScorer(RewardModelText text, std::unique_ptr<FrozenModel> model,
                                     std::int64_t positions_max, bool offload)
    : text_(std::move(text)), model_(std::move(model)), positions_max_(positions_max) {
  if (model_)
    offload_ =
        std::make_unique<Offload>(model_->transformer(), OffloadOptions{.parameters = offload});
}

Result<std::unique_ptr<RewardModelScorer>> RewardModelScorer::create(
    const std::filesystem::path& model, const TransformerOptions& options, bool start, bool offload,
    const FrozenRanks& ranks) {
  Result<ModelConfig> config = ModelConfig::load(model);
  if (!config.ok()) return config.status();
  if (const Status head = check_head(*config, model); !head.ok()) return head;
  Result<RewardModelText> text = RewardModelText::load(model);
  if (!text.ok()) return text.status();
  std::unique_ptr<FrozenModel> loaded;
  if (start) {
    at::set_num_threads(options.threads);
    Result<std::unique_ptr<FrozenModel>> weights = FrozenModel::load(model, options, ranks);
    if (!weights.ok()) return weights.status();
    loaded = std::move(*weights);
  }
  return std::unique_ptr<RewardModelScorer>(new RewardModelScorer(
      std::move(*text), std::move(loaded), config->max_position_embeddings, offload));
}

Status RewardModelScorer::check_row(const ScoreRequest& row) const {
  return text_.ids(row).status();
}

Result<ScoredBatch> RewardModelScorer::score(std::span<const ScoreRequest> requests) {
  ScoredBatch batch;
  batch.scores.resize(requests.size());
  std::vector<std::vector<std::int32_t>> conversations;
  std::vector<std::size_t> scored;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Result<std::vector<std::int32_t>> ids = text_.ids(requests[i]);
    if (!ids.ok()) {
      batch.scores[i] = {.value = 0.0,
                         .failure = ScoreFailure::kError,
                         .message = ids.status().message(),
                         .extra = {}};
      ++batch.counts.errors;
    } else if (const auto length = static_cast<std::int64_t>(ids->size());
               length < 1 || length > positions_max_) {
      const std::string message = "the conversation has " + std::to_string(length) +
                                  " tokens, and the reward model reads from 1 to " +
                                  std::to_string(positions_max_);
      batch.scores[i] = {
          .value = 0.0, .failure = ScoreFailure::kError, .message = message, .extra = {}};
      ++batch.counts.errors;
    } else {
      conversations.push_back(std::move(*ids));
      scored.push_back(i);
    }
  }
  const Result<std::vector<double>> values = score_ids(conversations);
  if (!values.ok()) return values.status();
  for (std::size_t i = 0; i < scored.size(); ++i) {
    Score& score = batch.scores[scored[i]];
    score.value = (*values)[i];
    if (!std::isfinite(score.value))
      score = {.value = 0.0,
               .failure = ScoreFailure::kInvalid,
               .message = "the reward model gave no finite number",
               .extra = {}};
  }
  return batch;
}

Result<std::vector<double>> RewardModelScorer::score_ids(
    const std::vector<std::vector<std::int32_t>>& conversations) const {
  if (!model_)
    return runtime::internal_error("a reward model that was not started is asked for scores");
  const Offload::Stay here = offload_->stay();
  std::vector<std::int64_t> lengths;
  for (const std::vector<std::int32_t>& ids : conversations)
    lengths.push_back(static_cast<std::int64_t>(ids.size()));
  const PassInput input{
      .pack =
          [&](const MicroBatch& rows) {
            PackedBatch batch;
            for (std::int64_t i = rows.first; i < rows.last; ++i)
              batch.append(conversations[static_cast<std::size_t>(i)]);
            return batch;
          },
      .wanted = {.heads = {model_->config().output_heads.front().name}, .last_tokens_only = true}};
  const Result<std::vector<MicroBatch>> passes = model_->in_step(
      plan_micro_batches(lengths, {.samples_max = 0, .tokens_max = kRewardModelPassTokens}));
  if (!passes.ok()) return passes.status().with_context("reward model");
  std::vector<double> scores;
  const Status scored =
      Passes(model_->transformer(), {})
          .score(*passes, input,
                 [&](const Outputs& outputs, const MicroBatch&, const PackedBatch&) -> Status {
                   const at::Tensor labels_BL = outputs.heads.front().contiguous();
                   const std::int64_t labels = labels_BL.size(1);
                   for (std::int64_t row = 0; row < labels_BL.size(0); ++row)
                     scores.push_back(labels_BL.const_data_ptr<float>()[(row + 1) * labels - 1]);
                   return {};
                 });
  if (!scored.ok()) return scored.with_context("reward model");
  return scores;
}

RewardModelLoader reward_model_loader(const TransformerOptions& options, bool offload,
                                      const FrozenRanks& ranks) {
  return [options, offload, ranks](const std::filesystem::path& model,
                                   bool start) -> Result<std::unique_ptr<Scorer>> {
    Result<std::unique_ptr<RewardModelScorer>> scorer =
        RewardModelScorer::create(model, options, start, offload, ranks);
    if (!scorer.ok()) return scorer.status();
    return std::unique_ptr<Scorer>(std::move(*scorer));
  };
}

}  // namespace rl
