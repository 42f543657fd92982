// ScoreReader: reads the values that an estimator needs of the samples besides their scores.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rl/metrics/step_metrics.h"
#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/sample_source.h"
#include "rl/run/rl/step_batch.h"
#include "runtime/core/result.h"

namespace rl {

class ScoreReader {
 public:
  virtual ~ScoreReader() = default;

  /// Once the samples of `prompts`, by worker, are there, and before they are scored.
  virtual runtime::Status compare(const std::vector<PromptBatch>& prompts, StepBatch& batch,
                                  StepTimer& timer) {
    return {};
  }

  /// Whether compare() asks for scores of other responses. What the reward has begun on these
  /// samples by then would be lost.
  virtual bool scores_others() const { return false; }

  /// Once they have scores.
  virtual runtime::Status read(StepBatch& batch) { return {}; }
};

/// ReMax: baselines are the scores of greedy responses. Where one has no score, its prompt's
/// samples have nothing to be compared with, and count as not scored.
class GreedyBaseline : public ScoreReader {
 public:
  GreedyBaseline(GenerateCalls& policy, ScoreCalls& reward) : policy_(policy), reward_(reward) {}

  runtime::Status compare(const std::vector<PromptBatch>& prompts, StepBatch& batch,
                          StepTimer& timer) override;
  bool scores_others() const override { return true; }

 private:
  GenerateCalls& policy_;
  ScoreCalls& reward_;
};

/// Numbers that the reward gives under `keys`. kInvalidArgument: it does not give one of a sample;
/// `config_key` is what named it.
class ScoreComponents : public ScoreReader {
 public:
  /// With `score_stands_in` the score takes the place of a number that is not there, as verl's dapo
  /// reward manager has it.
  ScoreComponents(std::vector<std::string> keys, std::string config_key, bool score_stands_in)
      : keys_(std::move(keys)),
        config_key_(std::move(config_key)),
        score_stands_in_(score_stands_in) {}

  runtime::Status read(StepBatch& batch) override;

 private:
  runtime::Status read_sample(const std::string& key, Sample& sample) const;

  std::vector<std::string> keys_;
  std::string config_key_;
  bool score_stands_in_;
};

}  // namespace rl
