// Metrics of a validation's scores: means, and what the best and the worst of several answers to a
// prompt would have scored.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rl/metrics/metrics.h"

namespace rl {

/// What the answers to one prompt were given, by name: "reward", and what scorers gave besides it
/// ("acc", "format"). Answers without a score are not among them.
struct ValidatedPrompt {
  std::string data_source;
  std::map<std::string, std::vector<double>> values;
};

/// By data source, means over its prompts, under verl's names: val-core/SOURCE/reward/mean@N and
/// best@N/mean. Here N is the largest number of scores that a prompt has. Where "acc" is among the
/// values, it takes the reward's place. The rest is in val-aux: std@N, best@n/{mean,std} and
/// worst@n/{mean,std} for n = 2, 4, ... N. best@n is of n answers drawn from the N with
/// replacement. verl estimates it by 1,000 draws; here it is the value that those tend to. NaN
/// stands for a value that a sample lacks, and is left out, as are prompts without a score.
Metrics validation_metrics(const std::vector<ValidatedPrompt>& prompts);

}  // namespace rl
