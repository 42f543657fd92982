// RewardFunction: the reward of a run. It has one scorer or a weighted mixture, the length penalty,
// and what to do about samples without a score.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "rl/config/config.h"
#include "rl/reward/length_penalty.h"
#include "rl/reward/scorer.h"
#include "rl/reward/weighted_scorer.h"
#include "runtime/core/result.h"

namespace rl {

/// What a worker says of its samples.
struct RewardReport {
  std::vector<double> scores;  // [samples]; 0 where left out
  std::vector<std::uint8_t>
      left_out;  // [samples]: 1 where there is no score, so that the sample may not be trained on
  std::map<std::string, double> sums;  // of metrics over samples ("reward/format"), to be divided
                                       // by `counts` over all workers
  std::map<std::string, double>
      counts;  // how many samples each has; what is only here is a count itself ("reward/timeouts")
  std::map<std::string, std::vector<double>> extra =
      {};  // [samples] each: further numbers that scorers gave ("format"); NaN where a sample has
           // none
  std::vector<double> unpenalized =
      {};  // [samples]: scores before what the length took off; empty: the same

  auto fields() { return std::tie(scores, left_out, sums, counts, extra, unpenalized); }
};

/// `extra` by worker and sample.
std::vector<std::vector<std::map<std::string, double>>> extras_of(
    std::span<const RewardReport> reports);

/// reward/... of all workers: means, and counts as they are.
std::map<std::string, double> reward_metrics(std::span<const RewardReport> reports);

/// What a reward says of one sample, part by part.
struct ExplainedScore {
  struct Part {
    std::string name;
    double weight = 1.0;
    Score score;
    std::string failure;  // why there is none, with the row; empty: there is one
  };
  std::vector<Part> parts;

  /// The weighted sum; nullopt where a part has no score.
  std::optional<double> value() const;
  /// Why there is none: the first part's reason.
  std::string failure() const;
};

/// A resource; one call at a time.
class RewardFunction {
 public:
  /// What `reward.*` says. `share` of the scoring processes belongs to this worker: 1 / workers.
  /// With `start`, files are loaded, processes started and servers asked whether they are there.
  /// Without it, only what can be known from the configuration is checked, and score() may not be
  /// called. Errors name the key and the cure; kUnimplemented: a reward model, and no loader.
  static runtime::Result<std::unique_ptr<RewardFunction>> from_config(
      const Config& config, std::int64_t workers, bool start,
      const RewardModelLoader& load_model = {});

  RewardFunction(std::vector<WeightedScorer> parts, LengthPenalty penalty, bool failure_is_error)
      : parts_(std::move(parts)), penalty_(penalty), failure_is_error_(failure_is_error) {}

  /// `response_tokens` are the requests' lengths. A request whose score is known keeps it as it is.
  /// No scorer hears of it, and its length does not matter. kTaskFailed: a sample has no score and
  /// reward.on_failure=error; or none of many has one, whatever it says.
  runtime::Result<RewardReport> score(std::span<const ScoreRequest> requests,
                                      std::span<const std::int64_t> response_tokens);

  /// The same by itself for each request, for people: whatever is wrong with one is that one's
  /// failure. The length penalty, which counts tokens, is left out.
  std::vector<ExplainedScore> explain(std::span<const ScoreRequest> requests);

  /// See Scorer: of those parts that can.
  bool prepares() const;
  void prepare(std::span<const ScoreRequest> requests);

  runtime::Status check_row(const ScoreRequest& row) const;

 private:
  class Scoring;

  /// Asks each part, and adds what they say in their order.
  runtime::Status ask(Scoring& scoring);
  void add_penalties(Scoring& scoring, std::span<const ScoreRequest> requests,
                     std::span<const std::int64_t> response_tokens) const;

  std::vector<WeightedScorer> parts_;
  LengthPenalty penalty_;
  bool failure_is_error_;
};

}  // namespace rl
