#include "rl/reward/reward_function.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "rl/reward/scorer_factory.h"
#include "runtime/core/log.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

constexpr std::size_t kManySamples =
    4;  // from which on "none has a score" means that the scorer is broken

const char* kind_of(ScoreFailure failure) {
  switch (failure) {
    case ScoreFailure::kNone: break;
    case ScoreFailure::kTimeout: return "it exceeded reward.timeout";
    case ScoreFailure::kCrash: return "its process died";
    case ScoreFailure::kError: return "the scorer failed";
    case ScoreFailure::kInvalid: return "the scorer gave no finite number";
  }
  return "";
}

std::string describe(const ScoreRequest& request, const Score& score) {
  return request.where + ": " + kind_of(score.failure) + " (" + score.message + ")";
}

// What is counted of calls, as `reward/NAME`.
constexpr std::array<std::pair<const char*, std::int64_t ScoreCounts::*>, 5> kCounts = {
    {{"timeouts", &ScoreCounts::timeouts},
     {"crashes", &ScoreCounts::crashes},
     {"errors", &ScoreCounts::errors},
     {"retries", &ScoreCounts::retries},
     {"overtaken", &ScoreCounts::overtaken}}};
constexpr const char* kFailedMetric = "failed";  // samples

void count(RewardReport& report, const ScoreCounts& counts) {
  for (const auto& [name, value] : kCounts)
    report.counts[std::string("reward/") + name] += static_cast<double>(counts.*value);
}

// What the scorers say of sample `i` besides its score: kept by sample, and as a mean over them.
void add_extra(RewardReport& report, const std::string& name, std::size_t i, double value) {
  std::vector<double>& values = report.extra[name];
  values.resize(report.scores.size(), std::numeric_limits<double>::quiet_NaN());
  values[i] = value;
}

// What is counted here has its name: a scorer's own number of that name is reported as scorer/NAME.
void add_metric(RewardReport& report, const std::string& name, double value) {
  const bool ours =
      name == kFailedMetric || std::any_of(kCounts.begin(), kCounts.end(),
                                           [&](const auto& count) { return name == count.first; });
  const std::string metric = "reward/" + (ours ? "scorer/" + name : name);
  report.sums[metric] += value;
  report.counts[metric] += 1;
}

/// What a part says of each request: of all at once, and where that fails of each by itself.
std::vector<ExplainedScore::Part> explained_by(const WeightedScorer& part,
                                               std::span<const ScoreRequest> requests) {
  std::vector<ExplainedScore::Part> explained;
  Result<ScoredBatch> batch = part.scorer->score(requests);
  if (batch.ok() && batch->scores.size() == requests.size()) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      Score& score = batch->scores[i];
      std::string failure = score.ok() ? std::string() : describe(requests[i], score);
      explained.push_back({part.name, part.weight, std::move(score), std::move(failure)});
    }
  } else if (requests.size() == 1) {
    const std::string why = batch.ok() ? requests.front().where + ": the scorer gave no score"
                                       : batch.status().message();
    explained.push_back({part.name, part.weight, {}, why});
  } else {
    for (const ScoreRequest& request : requests)
      explained.push_back(std::move(explained_by(part, {&request, 1}).front()));
  }
  return explained;
}

nlohmann::ordered_json tree_at(const Config& config, const char* key) {
  const nlohmann::ordered_json* found = config.find(key);
  return found == nullptr ? nlohmann::ordered_json() : *found;
}

}  // namespace

std::map<std::string, double> reward_metrics(std::span<const RewardReport> reports) {
  std::map<std::string, double> sums, metrics;
  for (const RewardReport& report : reports) {
    for (const auto& [name, value] : report.counts) metrics[name] += value;
    for (const auto& [name, value] : report.sums) sums[name] += value;
  }
  for (const auto& [name, sum] : sums) {
    if (metrics[name] > 0) metrics[name] = sum / metrics[name];
  }
  return metrics;
}

std::vector<std::vector<std::map<std::string, double>>> extras_of(
    std::span<const RewardReport> reports) {
  std::vector<std::vector<std::map<std::string, double>>> extras;
  for (const RewardReport& report : reports) {
    std::vector<std::map<std::string, double>>& of_worker =
        extras.emplace_back(report.scores.size());
    for (const auto& [name, values] : report.extra) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isnan(values[i])) of_worker[i][name] = values[i];
      }
    }
  }
  return extras;
}

Result<std::unique_ptr<RewardFunction>> RewardFunction::from_config(
    const Config& config, std::int64_t workers, bool start, const RewardModelLoader& load_model) {
  const Result<LengthPenalty> penalty = LengthPenalty::from_config(config);
  if (!penalty.ok()) return penalty.status();
  const Result<ScorerFactory> factory =
      ScorerFactory::from_config(config, std::max<std::int64_t>(1, workers), start, load_model);
  if (!factory.ok()) return factory.status();
  ConfigReader read(config);
  const auto rule = read.find_string("reward.rule"), url = read.find_string("reward.http.url"),
             library = read.find_string("reward.shared_library.path");
  const auto file = read.find_string("reward.custom_reward_function.path");
  const std::string function = read.get_string("reward.custom_reward_function.name");
  const bool uses_model = read.get_bool("reward.reward_model.enable");
  const auto model = read.find_string("reward.reward_model.model_path");
  const std::string on_failure = read.get_string("reward.on_failure");
  if (!read.status().ok()) return read.status();
  const nlohmann::ordered_json entries = tree_at(config, "reward.mixture");
  std::vector<std::string> given;
  if (rule) given.push_back("reward.rule");
  if (file) given.push_back("reward.custom_reward_function.path");
  if (url) given.push_back("reward.http.url");
  if (library) given.push_back("reward.shared_library.path");
  if (!entries.is_null()) given.push_back("reward.mixture");
  if (uses_model) given.push_back("reward.reward_model.enable");
  if (uses_model && !model)
    return runtime::invalid_argument(
        "reward.reward_model.enable=true needs reward.reward_model.model_path: the folder, or the "
        "name on the hub, of a classifier with a number for a whole conversation");
  if (uses_model && file) {
    return runtime::unimplemented(
        "reward.custom_reward_function.path with reward.reward_model.enable=true is verl's "
        "generative reward model, which the function asks over HTTP: that server is not "
        "started here. To add a classifier's score to the function's, use reward.mixture=[{model: "
        "FOLDER}, {function: FILE.py}] and reward.reward_model.enable=false");
  }
  if (given.size() > 1)
    return runtime::invalid_argument(
        given[0] + " and " + given[1] +
        " both define the score: set one of them, or mix them by reward.mixture");
  std::vector<WeightedScorer> parts;
  if (!entries.is_null()) {
    Result<std::vector<WeightedScorer>> mixed = factory->mixture(entries);
    if (!mixed.ok()) return mixed.status();
    parts = std::move(*mixed);
  } else {
    ScorerResult scorer =
        uses_model ? factory->model(*model)
        : file     ? factory->python(*file, function,
                                     tree_at(config, "reward.custom_reward_function.reward_kwargs"))
        : url      ? factory->http(*url)
        : library  ? factory->library(*library)
                   : factory->rule(rule.value_or(""), tree_at(config, "reward.rule_kwargs"),
                                   "reward.rule");
    if (!scorer.ok())
      return uses_model ? scorer.status().with_context("reward.reward_model.model_path")
                        : scorer.status();
    const char* const name = uses_model ? "model"
                             : file     ? "function"
                             : url      ? "http"
                             : library  ? "library"
                                        : "rule";
    parts.push_back({.name = name, .weight = 1.0, .scorer = std::move(*scorer)});
  }
  return std::make_unique<RewardFunction>(std::move(parts), *penalty, on_failure == "error");
}

// The report of one call as it is filled, and which requests the scorers are asked about.
class RewardFunction::Scoring {
 public:
  explicit Scoring(std::span<const ScoreRequest> requests) : requests_(requests) {
    report.scores.resize(requests.size());
    report.left_out.resize(requests.size());
    count(report, {});
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].known) {
        report.scores[i] = requests[i].known->value;
        if (!requests[i].known->ok()) leave_out(i, *requests[i].known);
        continue;
      }
      index_.push_back(i);
      asked_.push_back(requests[i]);
    }
  }

  std::span<const ScoreRequest> asked() const { return asked_; }

  /// The part's score of the k-th request that was asked about. `alone`: there is no other part.
  void add(std::size_t k, const WeightedScorer& part, const Score& score, bool alone) {
    const std::size_t i = index_[k];
    if (!score.ok()) return leave_out(i, score);
    report.scores[i] += part.weight * score.value;
    if (!alone) add_number(i, part.name, score.value);
    for (const auto& [name, value] : score.extra)
      add_number(i, alone ? name : part.name + "/" + name, value);
  }

  /// The report with the number of samples without a score. kTaskFailed: see RewardFunction::score.
  Result<RewardReport> finish(bool failure_is_error) && {
    const auto failed = static_cast<std::size_t>(
        std::count(report.left_out.begin(), report.left_out.end(), std::uint8_t{1}));
    report.counts[std::string("reward/") + kFailedMetric] = static_cast<double>(failed);
    if (failed == 0) return std::move(report);
    if (failed == requests_.size() && failed >= kManySamples)
      return runtime::task_failed("reward: none of " + std::to_string(failed) +
                                  " samples has a score; the first: " + first_failure_);
    if (failure_is_error)
      return runtime::task_failed("reward: no score for a sample: " + first_failure_ +
                                  "; reward.on_failure=exclude leaves such samples out");
    LOG(warn, "reward: {} of {} samples have no score and are left out of the step; the first: {}",
        failed, requests_.size(), first_failure_);
    return std::move(report);
  }

  RewardReport report;

 private:
  void leave_out(std::size_t i, const Score& score) {
    if (first_failure_.empty()) first_failure_ = describe(requests_[i], score);
    report.left_out[i] = 1;
  }

  void add_number(std::size_t i, const std::string& name, double value) {
    add_metric(report, name, value);
    add_extra(report, name, i, value);
  }

  std::span<const ScoreRequest> requests_;
  std::vector<ScoreRequest> asked_;
  std::vector<std::size_t> index_;  // of those that are asked about
  std::string first_failure_;
};

Result<RewardReport> RewardFunction::score(std::span<const ScoreRequest> requests,
                                           std::span<const std::int64_t> response_tokens) {
  if (requests.size() != response_tokens.size())
    return runtime::invalid_argument("reward: " + std::to_string(response_tokens.size()) +
                                     " lengths for " + std::to_string(requests.size()) +
                                     " samples");
  Scoring scoring(requests);
  if (const Status status = ask(scoring); !status.ok()) return status;
  add_penalties(scoring, requests, response_tokens);
  return std::move(scoring).finish(failure_is_error_);
}

Status RewardFunction::ask(Scoring& scoring) {
  const std::span<const ScoreRequest> asked = scoring.asked();
  std::vector<ScoredBatch> said(parts_.size());
  // Workers that wait for one another do so before others' functions take their time.
  for (const bool together : {true, false}) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Scorer& scorer = *parts_[i].scorer;
      if (scorer.scores_together() != together || (asked.empty() && !together)) continue;
      Result<ScoredBatch> batch = scorer.score(asked);
      if (!batch.ok()) return batch.status();
      if (batch->scores.size() != asked.size())
        return runtime::internal_error("reward: " + std::to_string(batch->scores.size()) +
                                       " scores for " + std::to_string(asked.size()) + " samples");
      said[i] = std::move(*batch);
    }
  }
  if (asked.empty()) return {};
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    count(scoring.report, said[i].counts);
    for (std::size_t k = 0; k < asked.size(); ++k)
      scoring.add(k, parts_[i], said[i].scores[k], /*alone=*/parts_.size() == 1);
  }
  return {};
}

void RewardFunction::add_penalties(Scoring& scoring, std::span<const ScoreRequest> requests,
                                   std::span<const std::int64_t> response_tokens) const {
  RewardReport& report = scoring.report;
  if (penalty_.enabled) report.unpenalized = report.scores;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (report.left_out[i] != 0) {
      report.scores[i] = 0;
      continue;
    }
    if (requests[i].known) continue;
    const double penalty = penalty_.of(response_tokens[i]);
    report.scores[i] += penalty;
    if (!penalty_.log) continue;
    add_metric(report, "overlong_reward", penalty);
    add_metric(report, "overlong", penalty < 0 ? 1.0 : 0.0);
  }
}

std::optional<double> ExplainedScore::value() const {
  double sum = 0.0;
  for (const Part& part : parts) {
    if (!part.failure.empty()) return std::nullopt;
    sum += part.weight * part.score.value;
  }
  return sum;
}

std::string ExplainedScore::failure() const {
  const auto failed = std::find_if(parts.begin(), parts.end(),
                                   [](const Part& part) { return !part.failure.empty(); });
  return failed == parts.end() ? std::string() : failed->failure;
}

std::vector<ExplainedScore> RewardFunction::explain(std::span<const ScoreRequest> requests) {
  std::vector<ExplainedScore> explained(requests.size());
  if (requests.empty()) return explained;
  for (const WeightedScorer& part : parts_) {
    std::vector<ExplainedScore::Part> of_part = explained_by(part, requests);
    for (std::size_t i = 0; i < requests.size(); ++i)
      explained[i].parts.push_back(std::move(of_part[i]));
  }
  return explained;
}

bool RewardFunction::prepares() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const WeightedScorer& part) {
    return part.scorer && part.scorer->prepares();
  });
}

void RewardFunction::prepare(std::span<const ScoreRequest> requests) {
  for (const WeightedScorer& part : parts_) part.scorer->prepare(requests);
}

Status RewardFunction::check_row(const ScoreRequest& row) const {
  for (const WeightedScorer& part : parts_) {
    const Status status = part.scorer ? part.scorer->check_row(row) : Status();
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace rl
