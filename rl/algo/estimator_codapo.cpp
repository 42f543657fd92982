#include "rl/algo/estimator_codapo.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "rl/algo/estimator_list.h"
#include "rl/algo/response_estimator.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

struct Question {
  double responses = 0, logprobs = 0, right = 0;

  double value() const {
    const double difficulty = 1.0 - right / responses;
    return std::exp(logprobs / responses) * (1.0 - 4.0 * (difficulty - 0.5) * (difficulty - 0.5));
  }
};

}  // namespace

std::vector<double> codapo_values(std::span<const float> mean_logprobs,
                                  std::span<const std::uint8_t> right, Groups groups) {
  CHECK(mean_logprobs.size() == groups.size() && right.size() == groups.size());
  std::unordered_map<std::int64_t, Question> questions;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Question& question = questions[groups[i]];
    question.responses += 1;
    question.logprobs += mean_logprobs[i];
    question.right += right[i];
  }
  std::vector<double> values;
  for (const std::int64_t group : groups) values.push_back(questions[group].value());
  return values;
}

std::vector<float> codapo_advantages(std::span<const float> scores, std::span<const double> values,
                                     Groups groups, double offset, bool normalize_by_std) {
  CHECK(scores.size() == values.size());
  std::vector<float> advantages = grpo_advantages(scores, groups, normalize_by_std);
  for (std::size_t i = 0; i < advantages.size(); ++i)
    advantages[i] *= static_cast<float>(values[i] + offset);
  return advantages;
}

std::vector<std::int64_t> codapo_focus(std::span<const double> values, Groups groups,
                                       std::int64_t count, std::int64_t places) {
  CHECK(values.size() == groups.size() && count > 0);
  std::vector<std::pair<double, std::int64_t>> best;  // falling value, then rising group
  std::unordered_map<std::int64_t, bool> seen;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!std::exchange(seen[groups[i]], true)) best.emplace_back(-values[i], groups[i]);
  }
  std::sort(best.begin(), best.end());
  best.resize(std::min(best.size(), static_cast<std::size_t>(count)));
  std::vector<std::int64_t> focus;
  for (std::int64_t i = 0; i < places && !best.empty(); ++i)
    focus.push_back(best[static_cast<std::size_t>(i) % best.size()].second);
  return focus;
}

namespace {

// CodapoCredit finds out what prompts are worth, which the choice of the next step's takes, too.
class Codapo : public ResponseEstimator {
 public:
  Codapo()
      : ResponseEstimator(
            {.name = "codapo", .group_size_min = 2, .remainder_min = 2, .revisits_prompts = true}) {
  }

  runtime::Result<std::vector<float>> advantages(const ScoredResponses& responses,
                                                 const ResponseSettings& settings) const override {
    return codapo_advantages(responses.rewards, responses.prompt_values, responses.groups,
                             settings.prompt_value_offset, settings.normalize_by_std);
  }
};

}  // namespace

const AdvantageEstimator& codapo_estimator() {
  static const Codapo estimator;
  return estimator;
}

}  // namespace rl
