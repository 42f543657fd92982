#include "rl/worker/disco.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// The samples of one prompt.
struct Question {
  std::vector<std::int64_t> right, wrong;
};

// Questions of samples [first, last), which lie next to each other.
std::vector<Question> questions_of(const RolloutBatch& batch, std::span<const float> labels,
                                   std::int64_t first, std::int64_t last) {
  std::vector<Question> questions;
  for (std::int64_t sample = first; sample < last; ++sample) {
    const auto at = static_cast<std::size_t>(sample);
    if (sample == first || batch.prompt_of[at] != batch.prompt_of[at - 1]) questions.emplace_back();
    if (labels[at] > 0.0F) questions.back().right.push_back(sample);
    if (labels[at] < 0.0F) questions.back().wrong.push_back(sample);
  }
  return questions;
}

// The gradient of mean(right) - tau * log(mean(exp(wrong / tau))) by the scores, over -`questions`:
// what the loss multiplies them by.
void weigh(const Question& question, std::span<const double> scores, std::int64_t first, double tau,
           double questions, std::vector<float>& weights) {
  if (question.right.empty() || question.wrong.empty()) return;
  const auto score = [&](std::int64_t sample) {
    return scores[static_cast<std::size_t>(sample - first)];
  };
  for (const std::int64_t sample : question.right)
    weights[static_cast<std::size_t>(sample)] =
        static_cast<float>(-1.0 / (static_cast<double>(question.right.size()) * questions));
  double highest = score(question.wrong.front()), sum = 0.0;
  for (const std::int64_t sample : question.wrong) highest = std::max(highest, score(sample));
  for (const std::int64_t sample : question.wrong) sum += std::exp((score(sample) - highest) / tau);
  for (const std::int64_t sample : question.wrong)
    weights[static_cast<std::size_t>(sample)] =
        static_cast<float>(std::exp((score(sample) - highest) / tau) / sum / questions);
}

}  // namespace

std::vector<double> disco_scores(const RolloutBatch& batch, std::span<const float> now,
                                 std::span<const float> old, DiscoScore score, std::int64_t first,
                                 std::int64_t last) {
  std::vector<double> scores;
  auto token = static_cast<std::size_t>(batch.learned_before(first));
  for (std::int64_t sample = first; sample < last; ++sample) {
    const std::int64_t tokens = batch.learned_tokens(sample);
    double sum = 0.0;
    for (std::int64_t i = 0; i < tokens; ++i, ++token)
      sum += score == DiscoScore::kLogL ? double{now[token]}
                                        : std::exp(double{now[token]} - double{old[token]});
    scores.push_back(tokens == 0 ? 0.0 : sum / static_cast<double>(tokens));
  }
  return scores;
}

Result<DiscoWeights> disco_weights(const RolloutBatch& batch, std::span<const float> labels,
                                   std::span<const float> now, std::span<const float> old,
                                   const MiniBatch& mini_batch, const DiscoOptions& options,
                                   DataRanks& ranks) {
  CHECK(static_cast<std::int64_t>(labels.size()) == batch.samples() &&
        now.size() == batch.logprobs.size() && old.size() == now.size());
  const std::vector<Question> questions =
      questions_of(batch, labels, mini_batch.first_sample, mini_batch.last_sample);
  std::vector<double> totals(2, 0.0);  // questions, KL
  totals[0] = static_cast<double>(questions.size());
  for (auto i = static_cast<std::size_t>(batch.learned_before(mini_batch.first_sample));
       i < static_cast<std::size_t>(batch.learned_before(mini_batch.last_sample)); ++i) {
    const double log_ratio = double{now[i]} - double{old[i]};
    totals[1] += std::expm1(log_ratio) - log_ratio;
  }
  if (const Status summed = ranks.sum(totals); !summed.ok()) return summed;
  DiscoWeights weights{.of_samples = std::vector<float>(labels.size(), 0.0F)};
  weights.mean_kl = totals[1] / std::max(1.0, static_cast<double>(mini_batch.tokens_total));
  weights.kl = std::max(0.0, options.beta * (weights.mean_kl - options.delta));
  const std::vector<double> scores =
      disco_scores(batch, now, old, options.score, mini_batch.first_sample, mini_batch.last_sample);
  for (const Question& question : questions)
    weigh(question, scores, mini_batch.first_sample, options.tau, std::max(1.0, totals[0]),
          weights.of_samples);
  return weights;
}

}  // namespace rl
