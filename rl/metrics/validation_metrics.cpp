#include "rl/metrics/validation_metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

namespace rl {
namespace {

struct Moments {
  double mean = 0.0;
  double std = 0.0;
};

Moments moments(const std::vector<double>& values, const std::vector<double>& weights) {
  Moments result;
  for (std::size_t i = 0; i < values.size(); ++i) result.mean += weights[i] * values[i];
  for (std::size_t i = 0; i < values.size(); ++i)
    result.std += weights[i] * (values[i] - result.mean) * (values[i] - result.mean);
  result.std = std::sqrt(result.std);
  return result;
}

// The greatest of n draws with replacement from N sorted values is the k-th or less with
// probability (k / N)^n.
Moments greatest_of(const std::vector<double>& ascending, std::size_t draws) {
  const auto count = static_cast<double>(ascending.size());
  std::vector<double> weights;
  for (std::size_t k = 0; k < ascending.size(); ++k) {
    weights.push_back(std::pow(static_cast<double>(k + 1) / count, static_cast<double>(draws)) -
                      std::pow(static_cast<double>(k) / count, static_cast<double>(draws)));
  }
  return moments(ascending, weights);
}

// 2, 4, 8, ... and `count` itself.
std::vector<std::size_t> draw_counts(std::size_t count) {
  std::vector<std::size_t> counts;
  for (std::size_t n = 2; n < count; n *= 2) counts.push_back(n);
  if (count > 1) counts.push_back(count);
  return counts;
}

// The metrics of one prompt, by name without the section.
std::map<std::string, double> prompt_metrics(std::vector<double> scores) {
  const std::string at_all = "@" + std::to_string(scores.size());
  const Moments all =
      moments(scores, std::vector<double>(scores.size(), 1.0 / static_cast<double>(scores.size())));
  std::map<std::string, double> metrics{{"mean" + at_all, all.mean}};
  if (scores.size() < 2) return metrics;
  metrics["std" + at_all] = all.std;
  std::sort(scores.begin(), scores.end());
  std::vector<double> negated;
  for (auto score = scores.rbegin(); score != scores.rend(); ++score) negated.push_back(-*score);
  for (const std::size_t n : draw_counts(scores.size())) {
    const std::string at = "@" + std::to_string(n);
    const Moments best = greatest_of(scores, n);
    const Moments worst = greatest_of(negated, n);
    metrics["best" + at + "/mean"] = best.mean;
    metrics["best" + at + "/std"] = best.std;
    metrics["worst" + at + "/mean"] = -worst.mean;
    metrics["worst" + at + "/std"] = worst.std;
  }
  return metrics;
}

bool is_core(const std::string& name, std::size_t most) {
  const bool says_much = name.starts_with("mean") || name.starts_with("best");
  const std::size_t at = name.find('@');
  return says_much && name.substr(at + 1, name.find('/') - at - 1) == std::to_string(most);
}

}  // namespace

Metrics validation_metrics(const std::vector<ValidatedPrompt>& prompts) {
  struct Variable {
    std::map<std::string, std::vector<double>> by_name;  // of each prompt one
    std::size_t most = 0;                                // values that a prompt has
  };
  std::map<std::string, std::map<std::string, Variable>> sources;
  for (const ValidatedPrompt& prompt : prompts) {
    for (const auto& [variable, all] : prompt.values) {
      std::vector<double> values;
      std::copy_if(all.begin(), all.end(), std::back_inserter(values),
                   [](double value) { return !std::isnan(value); });
      if (values.empty()) continue;
      Variable& of = sources[prompt.data_source.empty() ? "data" : prompt.data_source][variable];
      of.most = std::max(of.most, values.size());
      for (const auto& [name, value] : prompt_metrics(std::move(values)))
        of.by_name[name].push_back(value);
    }
  }
  Metrics metrics;
  for (const auto& [source, variables] : sources) {
    const std::string core = variables.contains("acc") ? "acc" : "reward";
    for (const auto& [variable, of] : variables) {
      for (const auto& [name, values] : of.by_name) {
        double sum = 0.0;
        for (const double value : values) sum += value;
        const char* section = variable == core && is_core(name, of.most) ? "val-core/" : "val-aux/";
        metrics[section + source + "/" + variable + "/" + name] =
            sum / static_cast<double>(values.size());
      }
    }
  }
  return metrics;
}

}  // namespace rl
