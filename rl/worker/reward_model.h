// The reward model: a classifier that reads a prompt with its response and says how good it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/model/offload.h"
#include "rl/model/transformer.h"
#include "rl/reward/reward_function.h"
#include "rl/reward/scorer.h"
#include "rl/template/chat_templates.h"
#include "rl/tokenizer/tokenizer.h"
#include "rl/worker/frozen_model.h"
#include "runtime/core/result.h"

namespace rl {

/// Tokens of one forward pass, unless a single conversation has more. Scores do not depend on it.
/// Each worker cuts its own passes: only there are conversations tokens.
inline constexpr std::int64_t kRewardModelPassTokens = 4096;

/// Writes a conversation as the reward model has to read it. Like verl, it uses the chat template
/// of the reward model, whatever the policy's is. A prompt that is plain text is followed by the
/// response and the end of the sequence. Immutable.
class RewardModelText {
 public:
  /// kInvalidArgument: the chat template does not parse. Else those of Tokenizer::load.
  static runtime::Result<RewardModelText> load(const std::filesystem::path& model);

  /// `request.prompt` is JSON: a text, or a list of messages. kInvalidArgument: neither, a template
  /// that refuses the messages, or none for messages.
  runtime::Result<std::vector<std::int32_t>> ids(const ScoreRequest& request) const;

 private:
  RewardModelText(Tokenizer tokenizer, ChatTemplates chat_template)
      : tokenizer_(std::move(tokenizer)), chat_template_(std::move(chat_template)) {}
  runtime::Result<std::vector<std::int32_t>> encode_chat(nlohmann::ordered_json messages,
                                                         const std::string& response) const;

  Tokenizer tokenizer_;
  ChatTemplates chat_template_;
};

/// A model with a head: ...ForSequenceClassification, ...ForTokenClassification (a critic's form),
/// or a head next to the output layer. Its number at the last token counts; of several labels the
/// last, without softmax or sigmoid, as in verl. A resource; one call at a time.
class RewardModelScorer : public Scorer {
 public:
  /// Without `start` the weights are not read, and only check_row() may be called. `offload`: on a
  /// device, weights leave it between calls. `ranks` keep them once. kInvalidArgument: a model
  /// without such a head. Else those of Transformer::load.
  static runtime::Result<std::unique_ptr<RewardModelScorer>> create(
      const std::filesystem::path& model, const TransformerOptions& options, bool start,
      bool offload = false, const FrozenRanks& ranks = {});

  /// A conversation that is longer than the model can read has no score.
  runtime::Result<ScoredBatch> score(std::span<const ScoreRequest> requests) override;
  runtime::Status check_row(const ScoreRequest& row) const override;
  bool scores_together() const override { return model_ && model_->is_shared(); }

  /// Of conversations that are tokens already; the same number whatever they stand next to.
  /// Collective where weights are kept once.
  runtime::Result<std::vector<double>> score_ids(
      const std::vector<std::vector<std::int32_t>>& conversations) const;

 private:
  RewardModelScorer(RewardModelText text, std::unique_ptr<FrozenModel> model,
                    std::int64_t positions_max, bool offload);

  RewardModelText text_;
  std::unique_ptr<FrozenModel> model_;  // null: not started
  std::unique_ptr<Offload> offload_;    // of the model, if there is one
  std::int64_t positions_max_;
};

/// How RewardFunction::from_config comes by reward models; the loader that workers give it.
RewardModelLoader reward_model_loader(const TransformerOptions& options, bool offload = false,
                                      const FrozenRanks& ranks = {});

}  // namespace rl
