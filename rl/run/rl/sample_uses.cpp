#include "rl/run/rl/sample_uses.h"

#include <algorithm>
#include <numeric>

#include "rl/algo/resampling.h"
#include "rl/batch/worker_lists.h"

namespace rl {
namespace {

// The samples as they would stand on a single worker. What is drawn at random by a sample's place
// must not depend on who trains it.
std::vector<std::size_t> in_order_of_prompts(const std::vector<std::int64_t>& groups) {
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return groups[a] < groups[b]; });
  return order;
}

std::vector<std::int32_t> repeats_by_score(const StepBatch& batch, const PfPpoOptions& options,
                                           std::uint64_t seed) {
  const std::vector<double> scores = batch.all<double>(&Sample::score);
  const std::vector<std::size_t> order = in_order_of_prompts(batch.prompt_of_samples());
  std::vector<double> ordered;
  for (const std::size_t sample : order) ordered.push_back(scores[sample]);
  const std::vector<std::int32_t> drawn =
      resample(resampling_weights(ordered, options.method, options.weight_pow), seed);
  std::vector<std::int32_t> repeats(scores.size());
  for (std::size_t i = 0; i < order.size(); ++i) repeats[order[i]] = drawn[i];
  return repeats;
}

}  // namespace

std::vector<SampleUse> sample_uses(const StepBatch& batch, const SampleUseOptions& options,
                                   std::int64_t step) {
  std::vector<SampleUse> uses(batch.shares.size());
  if (options.pf_ppo) {
    const std::uint64_t seed =
        options.seed ^ (0xBF58476D1CE4E5B9ULL * static_cast<std::uint64_t>(step));
    const auto parts =
        cut_like(repeats_by_score(batch, *options.pf_ppo, seed), batch.by_worker(&Sample::score));
    for (std::size_t worker = 0; worker < uses.size(); ++worker)
      uses[worker].repeats = parts[worker];
  }
  for (std::size_t worker = 0; worker < uses.size(); ++worker) {
    SampleUse& use = uses[worker];
    std::size_t at = 0;
    if (options.mask_truncated && use.repeats.empty())
      use.repeats.assign(batch.shares[worker].size(), 1);
    for (const SampleGroup& group : batch.shares[worker].groups) {
      for (const Sample& sample : group.samples) {
        if (options.mask_truncated) use.repeats[at++] *= sample.stopped ? 1 : 0;
        if (options.positive_score)
          use.positive.push_back(sample.score >= *options.positive_score ? 1 : 0);
      }
    }
  }
  return uses;
}

}  // namespace rl
