// Replay: groups of earlier steps are trained on beside a step's own.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <utility>

#include "rl/train/group_filter.h"
#include "rl/train/worker_lists.h"
#include "rl/trainer.h"
#include "runtime/core/log.h"
#include "runtime/core/rest_of.h"

namespace rl {
namespace {

using runtime::ObjectRef;
using runtime::Result;
using runtime::split;
using runtime::Status;

// One worker's groups of one stored batch.
struct Taken {
  ObjectRef<RolloutBatch> batch;
  std::vector<std::int64_t> rows;
  std::vector<StoredGroup> groups;
};

// Neighbours of the same batch together.
std::vector<Taken> by_batch(std::vector<StoredGroup> groups) {
  std::vector<Taken> taken;
  for (StoredGroup& group : groups) {
    if (taken.empty() || !(taken.back().batch == group.batch))
      taken.push_back({group.batch, {}, {}});
    taken.back().rows.push_back(group.row);
    taken.back().groups.push_back(std::move(group));
  }
  return taken;
}

std::vector<double> slice(const std::vector<double>& values, std::size_t first, std::size_t count) {
  return {values.begin() + static_cast<std::ptrdiff_t>(first),
          values.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

}  // namespace

// What was drawn in this step goes into the store once what is replayed has been chosen.
Status Trainer::mix_replayed(StepSamples& samples) {
  const std::int64_t step = steps_done_ + 1;
  std::vector<StoredGroup> fresh;
  for (std::size_t worker = 0; worker < samples.tasks.size(); ++worker) {
    std::size_t first = 0;
    for (std::size_t prompt = 0; prompt < samples.tasks[worker].size(); ++prompt) {
      const auto count = static_cast<std::size_t>(samples.samples_of[worker][prompt]);
      StoredGroup group{.batch = samples.batches[worker],
                        .row = static_cast<std::int64_t>(prompt),
                        .step = step,
                        .uses = 0,
                        .task = samples.tasks[worker][prompt],
                        .scores = slice(samples.scores[worker], first, count),
                        .baselines = {},
                        .components = {}};
      if (!samples.baselines.empty())
        group.baselines = slice(samples.baselines[worker], first, count);
      if (!samples.components.empty()) {
        const auto begin = samples.components[worker].begin() + static_cast<std::ptrdiff_t>(first);
        group.components.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
      }
      first += count;
      fresh.push_back(std::move(group));
    }
  }
  const auto wanted = static_cast<std::int64_t>(std::lround(
      options_.sample_store.replay_ratio * static_cast<double>(count_prompts(samples.shards))));
  const std::uint64_t seed =
      options_.seed ^ (0xD1B54A32D192ED03ULL * static_cast<std::uint64_t>(step));
  std::vector<StoredGroup> drawn = sample_store_.draw(step, wanted, seed);
  samples.draw_metrics.merge(sample_store_.metrics(step));
  double age = 0.0;
  for (const StoredGroup& group : drawn) age += static_cast<double>(step - group.step);
  samples.draw_metrics["sample_store/replayed"] = static_cast<double>(drawn.size());
  samples.draw_metrics["sample_store/replayed_age_mean"] =
      drawn.empty() ? 0.0 : age / static_cast<double>(drawn.size());
  std::vector<std::vector<StoredGroup>> of_worker(policy_.size());
  for (std::size_t i = 0; i < drawn.size(); ++i)
    of_worker[i % of_worker.size()].push_back(std::move(drawn[i]));
  sample_store_.add(std::move(fresh));
  return append_replayed(samples, std::move(of_worker));
}

Status Trainer::append_replayed(StepSamples& samples,
                                std::vector<std::vector<StoredGroup>> groups) {
  std::vector<std::vector<Taken>> taken;
  std::size_t rounds = 0;
  for (std::vector<StoredGroup>& of_worker : groups) {
    std::stable_sort(of_worker.begin(), of_worker.end(),
                     [](const StoredGroup& a, const StoredGroup& b) {
                       return a.step < b.step;
                     });  // few batches, and so few rounds
    taken.push_back(by_batch(std::move(of_worker)));
    rounds = std::max(rounds, taken.back().size());
  }
  const auto gather = [&](std::size_t round) {
    std::vector<ObjectRef<RolloutBatch>> batches;
    std::vector<std::vector<std::int64_t>> rows;
    for (const std::vector<Taken>& of_worker : taken) {
      const bool has = round < of_worker.size();
      batches.push_back(has ? of_worker[round].batch : no_samples_);
      rows.push_back(has ? of_worker[round].rows : std::vector<std::int64_t>());
    }
    return policy_.fetch(&PolicyActor::gather, split(samples.batches), split(batches), split(rows));
  };
  for (std::size_t round = 0; round < rounds; ++round) {
    auto gathered = gather(round);
    if (!gathered.ok()) {
      // A node that is gone took its samples along: without them the step goes on.
      std::int64_t lost = 0;
      for (std::vector<Taken>& of_worker : taken) {
        if (round >= of_worker.size() || runtime_.get(of_worker[round].batch).ok()) continue;
        lost += sample_store_.forget(of_worker[round].batch);
        of_worker[round] = {no_samples_, {}, {}};
      }
      if (lost == 0) return gathered.status();
      LOG(warn, "{} stored group(s) of samples are lost with the node that held them", lost);
      gathered = gather(round);
    }
    if (!gathered.ok()) return gathered.status();
    samples.batches = select(*gathered, &Generated::batch);
    samples.summaries = select(*gathered, &Generated::summary);
    for (std::size_t worker = 0; worker < taken.size(); ++worker) {
      if (round >= taken[worker].size()) continue;
      for (StoredGroup& group : taken[worker][round].groups) {
        samples.samples_of[worker].push_back(static_cast<std::int64_t>(group.scores.size()));
        samples.scores[worker].insert(samples.scores[worker].end(), group.scores.begin(),
                                      group.scores.end());
        if (!samples.baselines.empty())
          samples.baselines[worker].insert(samples.baselines[worker].end(), group.baselines.begin(),
                                           group.baselines.end());
        if (!samples.extras.empty())
          samples.extras[worker].resize(samples.scores[worker].size());  // forgotten
        if (!samples.components.empty())
          samples.components[worker].insert(samples.components[worker].end(),
                                            group.components.begin(), group.components.end());
        samples.tasks[worker].push_back(std::move(group.task));
      }
    }
  }
  // Numbered in turns: in how many batches the store has the groups differs once they come from a
  // checkpoint, and must not matter.
  std::int64_t number = count_prompts(samples.shards);
  for (bool more = true; more;) {
    more = false;
    for (std::size_t worker = 0; worker < samples.shards.size(); ++worker) {
      std::vector<std::int64_t>& prompts = samples.shards[worker].prompts;
      if (prompts.size() == samples.tasks[worker].size()) continue;
      prompts.push_back(number++);
      more = true;
    }
  }
  cut_mini_batches(samples.shards, options_.mini_batch_prompts);
  return {};
}

Status Trainer::restore_samples(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    LOG(warn, "{}: the checkpoint has no stored samples; the sample store begins empty",
        file.string());
    return {};
  }
  const std::string bytes = runtime::rest_of(in);
  Result<std::vector<SavedGroup>> saved = decode_groups(bytes);
  if (!saved.ok()) return saved.status().with_context(file.string());
  std::vector<StoredGroup> groups;
  for (SavedGroup& group : *saved) {
    Result<ObjectRef<RolloutBatch>> batch = runtime_.put(group.batch);
    if (!batch.ok()) return batch.status();
    groups.push_back({.batch = std::move(*batch),
                      .row = 0,
                      .step = group.step,
                      .uses = group.uses,
                      .task = std::move(group.task),
                      .scores = std::move(group.scores),
                      .baselines = std::move(group.baselines),
                      .components = std::move(group.components)});
  }
  sample_store_.restore(std::move(groups));
  return {};
}

}  // namespace rl
