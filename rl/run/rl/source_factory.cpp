#include "rl/run/rl/source_factory.h"

#include <utility>

#include "rl/run/rl/filtered_source.h"
#include "rl/run/rl/generated_ahead.h"
#include "rl/run/rl/generated_now.h"
#include "rl/run/rl/generated_partially.h"
#include "rl/run/rl/placed_source.h"
#include "rl/run/rl/replayed_source.h"
#include "rl/run/rl/scored_source.h"

namespace rl {
namespace {

std::unique_ptr<SampleGenerator> make_generator(const TrainerOptions& options,
                                                const SourceOptions& source,
                                                const SourceParts& parts) {
  if (options.partial_rollouts) {
    return std::make_unique<GeneratedPartially>(
        GeneratedPartiallyOptions{.partial = *options.partial_rollouts,
                                  .total_steps = source.total_steps,
                                  .batch_prompts = options.batch_prompts,
                                  .mini_batch_prompts = options.mini_batch_prompts},
        parts.prompts, parts.partial);
  }
  if (options.rollout_workers) {
    return std::make_unique<GeneratedAhead>(
        GeneratedAheadOptions{.steps_ahead = options.rollout_workers->steps_ahead,
                              .total_steps = source.total_steps,
                              .batch_prompts = options.batch_prompts,
                              .samples_per_prompt = options.samples_per_prompt,
                              .weights_name = source.weights_name},
        parts.prompts, parts.ahead, parts.batches);
  }
  return std::make_unique<GeneratedNow>(parts.prompts, parts.generate);
}

}  // namespace

std::unique_ptr<SampleSource> make_source(const TrainerOptions& options,
                                          const SourceOptions& source, const SourceParts& parts) {
  const bool filters = options.filter_groups.enabled, replays = options.sample_store.enabled;
  const bool places_later = filters || replays;
  std::unique_ptr<SampleSource> all = std::make_unique<ScoredSource>(
      ScoredSourceOptions{.samples_per_prompt = options.samples_per_prompt,
                          .group_size_min = source.group_size_min,
                          .keeps_unscored = filters},
      make_generator(options, source, parts), parts.reward, parts.batches, parts.reader,
      places_later ? nullptr : &parts.balancer, places_later ? nullptr : &parts.references);
  if (filters) {
    all = std::make_unique<FilteredSource>(
        FilteredSourceOptions{.batch_prompts = options.batch_prompts,
                              .mini_batch_prompts = options.mini_batch_prompts,
                              .rounds_max = options.filter_groups.rounds_max,
                              .metric = options.filter_groups.metric},
        std::move(all), parts.batches);
  }
  if (replays) {
    all = std::make_unique<ReplayedSource>(
        ReplayedSourceOptions{.store = options.sample_store,
                              .mini_batch_prompts = options.mini_batch_prompts,
                              .seed = options.seed},
        std::move(all), parts.batches);
  }
  if (places_later)
    all = std::make_unique<PlacedSource>(std::move(all), parts.balancer, parts.references);
  return all;
}

}  // namespace rl
