// The reward role: turns samples into text and text into scores.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rl/batch/rollout_batch.h"
#include "rl/comm/communicator.h"
#include "rl/config/config.h"
#include "rl/model/transformer.h"
#include "rl/reward/reward_function.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/result.h"

namespace rl {

/// One call at a time.
class RewardWorker {
 public:
  /// Loads the tokenizer of `model` and makes the reward of `reward.*`, whose processes `workers`
  /// share; `options` are of a reward model. `ranks`: those that keep reward models once; null:
  /// they are whole. Errors: theirs.
  static runtime::Result<RewardWorker> create(const Config& config,
                                              const std::filesystem::path& model,
                                              std::int64_t workers,
                                              const TransformerOptions& options,
                                              std::unique_ptr<Communicator> ranks = nullptr);

  RewardWorker(Tokenizer tokenizer, std::unique_ptr<RewardFunction> reward,
               std::unique_ptr<Communicator> ranks = nullptr)
      : tokenizer_(std::move(tokenizer)), ranks_(std::move(ranks)), reward_(std::move(reward)) {}

  /// Collective where reward models are kept once. A score per sample, or the mark that it has
  /// none. `tasks` belong to the rows of batch.prompts. kInvalidArgument: sizes that do not fit, or
  /// what a rule says of a ground truth, with the row; else those of RewardFunction::score.
  runtime::Result<RewardReport> score(const RolloutBatch& batch,
                                      const std::vector<RewardTask>& tasks);

  /// Where this rank stands, and the end of what it does with the others; see Communicator. Alone
  /// it stands nowhere. From any thread.
  Pulse pulse() const { return ranks_ ? ranks_->pulse() : Pulse(); }
  void abort(const runtime::Status& why) const {
    if (ranks_) ranks_->abort(why);
  }

  /// Whether prepare() does anything.
  bool prepares() const { return reward_->prepares(); }

  /// Begins to score responses, each with its task, that score() will be asked about, while others
  /// of the batch are generated. Returns at once.
  void prepare(const Ragged<std::int32_t>& responses, const std::vector<RewardTask>& tasks);

  /// The first `count` samples as text with their scores: special tokens left out.
  /// kInvalidArgument: sizes that do not fit.
  runtime::Result<std::vector<SampleText>> texts(const RolloutBatch& batch,
                                                 const std::vector<RewardTask>& tasks,
                                                 const std::vector<double>& scores,
                                                 std::int64_t count) const;

 private:
  ScoreRequest request_of(const RewardTask& task, std::span<const std::int32_t> response) const;

  Tokenizer tokenizer_;
  std::unique_ptr<Communicator> ranks_;
  std::unique_ptr<RewardFunction> reward_;
};

}  // namespace rl
