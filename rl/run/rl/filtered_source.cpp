#include "rl/run/rl/filtered_source.h"

#include <algorithm>
#include <map>

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

double filter_value(const Sample& sample, const std::string& metric) {
  if (metric == "acc") {
    const auto accuracy = sample.extras.find("acc");
    return accuracy != sample.extras.end() ? accuracy->second : sample.unpenalized;
  }
  return metric == "score" ? sample.unpenalized : sample.score;
}

bool is_informative(const SampleGroup& group, const std::string& metric) {
  const std::vector<Sample>& samples = group.samples;
  const bool scored = std::all_of(samples.begin(), samples.end(),
                                  [](const Sample& sample) { return sample.is_scored; });
  const bool differ = std::any_of(samples.begin(), samples.end(), [&](const Sample& sample) {
    return filter_value(sample, metric) != filter_value(samples.front(), metric);
  });
  return scored && (differ || samples.size() == 1);
}

}  // namespace

std::vector<std::vector<std::int64_t>> informative_groups(const StepBatch& batch,
                                                          const std::string& metric,
                                                          std::int64_t wanted) {
  std::map<std::int64_t, PromptPlace> found;  // by prompt
  for (std::size_t worker = 0; worker < batch.shares.size(); ++worker) {
    const std::vector<SampleGroup>& groups = batch.shares[worker].groups;
    for (std::size_t row = 0; row < groups.size(); ++row) {
      if (is_informative(groups[row], metric))
        found[groups[row].prompt] = {static_cast<std::int64_t>(worker),
                                     static_cast<std::int64_t>(row)};
    }
  }
  std::vector<std::vector<std::int64_t>> rows(batch.shares.size());
  for (const auto& [prompt, place] : found) {
    if (wanted-- > 0) rows[static_cast<std::size_t>(place.worker)].push_back(place.row);
  }
  return rows;
}

Result<StepBatch> FilteredSource::next(const SampleRequest& request, StepTimer& timer) {
  StepBatch kept;
  std::int64_t prompts_drawn = 0, round = 0;
  for (; kept.prompts() < options_.batch_prompts; ++round) {
    const std::int64_t missing = options_.batch_prompts - kept.prompts();
    if (options_.rounds_max > 0 && round == options_.rounds_max) return too_few(round, missing);
    const Result<StepBatch> fresh = inner().next({request.step, round}, timer);
    if (!fresh.ok()) return fresh.status();
    if (const Status added = keep(kept, *fresh, missing); !added.ok()) return added;
    prompts_drawn += fresh->prompts();
    timer.lap("gen");
  }
  kept.cut_mini_batches(options_.mini_batch_prompts);
  kept.metrics["train/num_gen_batches"] = static_cast<double>(round);
  kept.metrics["train/prompts_kept_ratio"] =
      static_cast<double>(options_.batch_prompts) / static_cast<double>(prompts_drawn);
  return kept;
}

Status FilteredSource::keep(StepBatch& kept, const StepBatch& fresh, std::int64_t missing) {
  const auto rows = informative_groups(fresh, options_.metric, missing);
  kept.shares.resize(fresh.shares.size());
  const Result<std::vector<Generated>> gathered =
      batches_.gather(kept.batches(), fresh.batches(), rows);
  if (!gathered.ok()) return gathered.status();
  kept.append(fresh, rows);
  // Orders that follow how training goes hear of no row of a filtered step.
  for (WorkerShare& share : kept.shares) {
    for (SampleGroup& group : share.groups) group.row = -1;
  }
  kept.reports.insert(kept.reports.end(), fresh.reports.begin(), fresh.reports.end());
  kept.metrics = sum_metrics({kept.metrics, fresh.metrics});
  kept.epoch = fresh.epoch;
  return kept.take(*gathered);
}

Status FilteredSource::too_few(std::int64_t rounds, std::int64_t missing) const {
  return runtime::resource_exhausted("after " + std::to_string(rounds) + " rounds of generation " +
                                     std::to_string(missing) + " of " +
                                     std::to_string(options_.batch_prompts) +
                                     " prompts with responses of different scores are missing: "
                                     "the task may be too easy or too hard; raise "
                                     "algorithm.filter_groups.max_num_gen_batches, "
                                     "data.gen_batch_size or actor_rollout_ref.rollout.n");
}

}  // namespace rl
