#include "rl/report/evaluation.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/core/check.h"

namespace rl {
namespace {

std::set<std::int64_t> sizes(std::int64_t n) {
  std::set<std::int64_t> all;
  for (std::int64_t k = 2; k <= n; k *= 2) all.insert(k);
  if (n > 1) all.insert(n);
  return all;
}

std::int64_t right_of(const EvaluatedPrompt& prompt) {
  return std::count_if(prompt.answers.begin(), prompt.answers.end(),
                       [](const EvaluatedAnswer& answer) { return answer.right; });
}

EvaluationSummary summary_of(const std::string& name,
                             const std::vector<const EvaluatedPrompt*>& prompts) {
  EvaluationSummary out;
  out.data_source = name;
  out.prompts = static_cast<std::int64_t>(prompts.size());
  std::int64_t n = prompts.empty() ? 0 : static_cast<std::int64_t>(prompts.front()->answers.size());
  for (const EvaluatedPrompt* prompt : prompts)
    n = std::min(n, static_cast<std::int64_t>(prompt->answers.size()));
  std::vector<double> accuracy;
  std::map<std::int64_t, std::vector<double>> pass, majority;
  std::int64_t cut = 0;
  for (const EvaluatedPrompt* prompt : prompts) {
    const auto count = static_cast<std::int64_t>(prompt->answers.size());
    const std::int64_t right = right_of(*prompt);
    out.answers += count;
    accuracy.push_back(count == 0 ? 0.0 : static_cast<double>(right) / static_cast<double>(count));
    for (const EvaluatedAnswer& answer : prompt->answers) {
      if (!answer.error.empty())
        ++out.errors;
      else
        out.score += answer.score;
      out.tokens += static_cast<double>(answer.tokens);
      cut += answer.cut ? 1 : 0;
    }
    for (const std::int64_t k : sizes(n)) {
      pass[k].push_back(pass_at(count, right, k));
      if (k > 2)
        majority[k].push_back(
            majority_at(prompt->answers, k));  // of two that differ nothing is the majority
    }
  }
  out.accuracy = estimate(accuracy);
  out.score /= static_cast<double>(std::max<std::int64_t>(1, out.answers - out.errors));
  out.tokens /= static_cast<double>(std::max<std::int64_t>(1, out.answers));
  out.cut = static_cast<double>(cut) / static_cast<double>(std::max<std::int64_t>(1, out.answers));
  for (const auto& [k, values] : pass) out.pass[k] = estimate(values);
  for (const auto& [k, values] : majority) out.majority[k] = estimate(values);
  return out;
}

}  // namespace

double pass_at(std::int64_t n, std::int64_t c, std::int64_t k) {
  CHECK(c >= 0 && c <= n);
  CHECK(k >= 1 && k <= n);
  if (n - c < k) return 1.0;
  double none = 1.0;
  for (std::int64_t i = n - c + 1; i <= n; ++i)
    none *= 1.0 - static_cast<double>(k) / static_cast<double>(i);
  return 1.0 - none;
}

double majority_at(const std::vector<EvaluatedAnswer>& answers, std::int64_t k) {
  CHECK(k >= 1 && k <= static_cast<std::int64_t>(answers.size()));
  const std::int64_t blocks = static_cast<std::int64_t>(answers.size()) / k;
  double sum = 0.0;
  for (std::int64_t block = 0; block < blocks; ++block) {
    std::map<std::string, std::vector<const EvaluatedAnswer*>> votes;
    std::size_t most = 0;
    for (std::int64_t i = block * k; i < (block + 1) * k; ++i) {
      const EvaluatedAnswer& answer = answers[static_cast<std::size_t>(i)];
      if (!answer.error.empty()) continue;
      auto& voters = votes[answer.answer];
      voters.push_back(&answer);
      most = std::max(most, voters.size());
    }
    double right = 0.0, tied = 0.0;
    for (const auto& [answer, voters] : votes) {
      if (voters.size() < most) continue;
      ++tied;
      right += static_cast<double>(
                   std::count_if(voters.begin(), voters.end(),
                                 [](const EvaluatedAnswer* voter) { return voter->right; })) /
               static_cast<double>(most);
    }
    if (tied > 0) sum += right / tied;
  }
  return sum / static_cast<double>(blocks);
}

Estimate estimate(const std::vector<double>& values) {
  if (values.empty()) return {};
  double mean = 0.0;
  for (const double value : values) mean += value;
  const auto n = static_cast<double>(values.size());
  mean /= n;
  constexpr double kZ = 1.959963984540054;  // 95 %, two-sided
  const double middle = (mean + kZ * kZ / (2 * n)) / (1 + kZ * kZ / n);
  const double half = kZ / (1 + kZ * kZ / n) *
                      std::sqrt(std::max(0.0, mean * (1 - mean)) / n + kZ * kZ / (4 * n * n));
  return {.value = mean, .low = std::max(0.0, middle - half), .high = std::min(1.0, middle + half)};
}

std::vector<EvaluationSummary> summarize(const std::vector<EvaluatedPrompt>& prompts) {
  std::map<std::string, std::vector<const EvaluatedPrompt*>> by_source;
  std::vector<const EvaluatedPrompt*> all;
  for (const EvaluatedPrompt& prompt : prompts) {
    by_source[prompt.data_source].push_back(&prompt);
    all.push_back(&prompt);
  }
  std::vector<EvaluationSummary> out;
  for (const auto& [name, of_source] : by_source) out.push_back(summary_of(name, of_source));
  if (out.size() > 1) out.push_back(summary_of("all", all));
  return out;
}

}  // namespace rl
