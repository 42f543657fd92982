// What a validation says of its scores: means, and what the best and the worst of several answers to a prompt would have scored.
#pragma once

#include <string>
#include <vector>

#include "rl/watch/metrics.h"

namespace rl {

/// The scores of the answers to one prompt; those without a score are not among them.
struct ValidatedPrompt {
  std::string data_source;
  std::vector<double> scores;
};

/// By data source, means over its prompts, under verl's names: val-core/SOURCE/reward/mean@N and best@N/mean, where N is the largest number of scores that a
/// prompt has; the rest in val-aux: std@N, best@n/{mean,std} and worst@n/{mean,std} for n = 2, 4, ... N. best@n is of n answers drawn from the N with
/// replacement; verl estimates it by 1,000 draws, here it is the value that those tend to. Prompts without a score are left out.
Metrics validation_metrics(const std::vector<ValidatedPrompt>& prompts);

}  // namespace rl
