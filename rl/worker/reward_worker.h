// The reward role: turns samples into text and text into scores.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "rl/config/config.h"
#include "rl/data/reward.h"
#include "rl/text/tokenizer.h"
#include "rl/train/rollout_batch.h"
#include "runtime/core/result.h"

namespace rl {

/// Scores by rule. Thread-safe once made.
class RewardWorker {
 public:
  /// Loads the tokenizer of `model` and takes the rule of `reward.*`. Errors: theirs.
  static runtime::Result<RewardWorker> create(const Config& config, const std::filesystem::path& model);

  RewardWorker(Tokenizer tokenizer, RuleReward reward) : tokenizer_(std::move(tokenizer)), reward_(std::move(reward)) {}

  /// A score per sample. `tasks` belong to the rows of batch.prompts. kInvalidArgument: sizes that do not fit, or what the rule says of
  /// a ground truth, with the row; kInternal: a score that is not finite.
  runtime::Result<std::vector<double>> score(const RolloutBatch& batch, const std::vector<RewardTask>& tasks) const;

  /// The first `count` samples as text with their scores: special tokens left out. Errors: as score().
  runtime::Result<std::vector<SampleText>> texts(const RolloutBatch& batch, const std::vector<RewardTask>& tasks, std::int64_t count) const;

 private:
  runtime::Result<double> score_sample(const RolloutBatch& batch, const std::vector<RewardTask>& tasks, std::int64_t sample) const;

  Tokenizer tokenizer_;
  RuleReward reward_;
};

}  // namespace rl
