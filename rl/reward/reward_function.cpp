#include "rl/reward/reward_function.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

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

// What the scorers say of sample `i` beside its score: kept by sample, and as a mean over them.
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
std::vector<ExplainedScore::Part> explained_by(const RewardFunction::Part& part,
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

Result<RewardReport> RewardFunction::score(std::span<const ScoreRequest> requests,
                                           std::span<const std::int64_t> response_tokens) {
  if (requests.size() != response_tokens.size())
    return runtime::invalid_argument("reward: " + std::to_string(response_tokens.size()) +
                                     " lengths for " + std::to_string(requests.size()) +
                                     " samples");
  RewardReport report;
  report.scores.resize(requests.size());
  report.left_out.resize(requests.size());
  std::string first_failure;
  count(report, {});
  const auto leave_out = [&](std::size_t i, const Score& score) {
    if (first_failure.empty()) first_failure = describe(requests[i], score);
    report.left_out[i] = 1;
  };
  std::vector<ScoreRequest> asked;
  std::vector<std::size_t> index;  // of those that are asked for
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].known) {
      report.scores[i] = requests[i].known->value;
      if (!requests[i].known->ok()) leave_out(i, *requests[i].known);
      continue;
    }
    index.push_back(i);
    asked.push_back(requests[i]);
  }
  for (const Part& part : parts_) {
    if (asked.empty()) break;
    const Result<ScoredBatch> batch = part.scorer->score(asked);
    if (!batch.ok()) return batch.status();
    if (batch->scores.size() != asked.size())
      return runtime::internal_error("reward: " + std::to_string(batch->scores.size()) +
                                     " scores for " + std::to_string(asked.size()) + " samples");
    count(report, batch->counts);
    for (std::size_t k = 0; k < asked.size(); ++k) {
      const std::size_t i = index[k];
      const Score& score = batch->scores[k];
      if (!score.ok()) {
        leave_out(i, score);
        continue;
      }
      report.scores[i] += part.weight * score.value;
      const auto add = [&](const std::string& name, double value) {
        add_metric(report, name, value);
        add_extra(report, name, i, value);
      };
      if (parts_.size() > 1) add(part.name, score.value);
      for (const auto& [name, value] : score.extra)
        add(parts_.size() > 1 ? part.name + "/" + name : name, value);
    }
  }
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
  const auto failed = static_cast<std::size_t>(
      std::count(report.left_out.begin(), report.left_out.end(), std::uint8_t{1}));
  report.counts[std::string("reward/") + kFailedMetric] = static_cast<double>(failed);
  if (failed == 0) return report;
  if (failed == requests.size() && failed >= kManySamples)
    return runtime::task_failed("reward: none of " + std::to_string(failed) +
                                " samples has a score; the first: " + first_failure);
  if (failure_is_error_)
    return runtime::task_failed("reward: no score for a sample: " + first_failure +
                                "; reward.on_failure=exclude leaves such samples out");
  LOG(warn, "reward: {} of {} samples have no score and are left out of the step; the first: {}",
      failed, requests.size(), first_failure);
  return report;
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
  for (const Part& part : parts_) {
    std::vector<ExplainedScore::Part> of_part = explained_by(part, requests);
    for (std::size_t i = 0; i < requests.size(); ++i)
      explained[i].parts.push_back(std::move(of_part[i]));
  }
  return explained;
}

bool RewardFunction::prepares() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const Part& part) { return part.scorer && part.scorer->prepares(); });
}

void RewardFunction::prepare(std::span<const ScoreRequest> requests) {
  for (const Part& part : parts_) part.scorer->prepare(requests);
}

Status RewardFunction::check_row(const ScoreRequest& row) const {
  for (const Part& part : parts_) {
    const Status status = part.scorer ? part.scorer->check_row(row) : Status();
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace rl
