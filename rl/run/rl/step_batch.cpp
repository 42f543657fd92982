#include "rl/run/rl/step_batch.h"

#include <cmath>
#include <numeric>

#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

Status take_lengths(WorkerShare& share, const RolloutSummary& summary) {
  if (summary.response_tokens.size() != share.size())
    return runtime::internal_error("a worker has another number of samples than were generated");
  std::size_t next = 0;
  for (SampleGroup& group : share.groups) {
    for (Sample& sample : group.samples) {
      sample.prompt_tokens = summary.prompt_tokens[next];
      sample.response_tokens = summary.response_tokens[next];
      sample.learned_tokens = summary.learned_tokens[next];
      sample.turns = summary.turns.empty() ? 0 : summary.turns[next];
      sample.stopped = summary.stopped[next] != 0;
      sample.mean_logprob = summary.mean_logprobs.empty() ? 0.0F : summary.mean_logprobs[next];
      ++next;
    }
  }
  return {};
}

void take_score(Sample& sample, const RewardReport& report, std::size_t at) {
  sample.is_scored = sample.is_scored && report.left_out[at] == 0;
  sample.score = report.scores[at];
  sample.unpenalized = report.unpenalized.empty() ? sample.score : report.unpenalized[at];
  for (const auto& [name, values] : report.extra) {
    if (!std::isnan(values[at])) sample.extras[name] = values[at];
  }
}

}  // namespace

std::size_t WorkerShare::size() const {
  std::size_t samples = 0;
  for (const SampleGroup& group : groups) samples += group.samples.size();
  return samples;
}

Result<StepBatch> StepBatch::of(StepPrompts prompts, const std::vector<Generated>& generated,
                                std::int64_t samples_per_prompt) {
  StepBatch batch{.shares = std::vector<WorkerShare>(generated.size()), .epoch = prompts.epoch};
  for (std::size_t worker = 0; worker < generated.size(); ++worker) {
    WorkerShare& share = batch.shares[worker];
    const PromptShard& shard = prompts.shards[worker];
    share.mini_batch_offsets = shard.mini_batch_offsets;
    if (prompts.tasks[worker].size() != shard.prompts.size())
      return runtime::internal_error("a worker generated samples for another number of prompts");
    for (std::size_t i = 0; i < shard.prompts.size(); ++i) {
      const std::int64_t prompt = shard.prompts[i];
      const bool is_known = prompt < static_cast<std::int64_t>(prompts.rows.size());
      share.groups.push_back(
          {.prompt = prompt,
           .row = is_known ? prompts.rows[static_cast<std::size_t>(prompt)] : -1,
           .task = std::move(prompts.tasks[worker][i]),
           .origin = {static_cast<std::int64_t>(worker), static_cast<std::int64_t>(i)},
           .samples = std::vector<Sample>(static_cast<std::size_t>(samples_per_prompt))});
    }
  }
  if (const Status taken = batch.take(generated); !taken.ok()) return taken;
  return batch;
}

std::int64_t StepBatch::prompts() const {
  std::int64_t prompts = 0;
  for (const WorkerShare& share : shares) prompts += static_cast<std::int64_t>(share.groups.size());
  return prompts;
}

std::size_t StepBatch::size() const {
  std::size_t samples = 0;
  for (const WorkerShare& share : shares) samples += share.size();
  return samples;
}

std::vector<runtime::ObjectRef<RolloutBatch>> StepBatch::batches() const {
  std::vector<runtime::ObjectRef<RolloutBatch>> batches;
  for (const WorkerShare& share : shares) batches.push_back(share.batch);
  return batches;
}

std::vector<std::vector<RewardTask>> StepBatch::tasks() const {
  std::vector<std::vector<RewardTask>> tasks;
  for (const WorkerShare& share : shares) {
    std::vector<RewardTask>& of_worker = tasks.emplace_back();
    for (const SampleGroup& group : share.groups) of_worker.push_back(group.task);
  }
  return tasks;
}

std::vector<PromptShard> StepBatch::shards() const {
  std::vector<PromptShard> shards;
  for (const WorkerShare& share : shares) {
    PromptShard& shard = shards.emplace_back();
    for (const SampleGroup& group : share.groups) shard.prompts.push_back(group.prompt);
    shard.mini_batch_offsets = share.mini_batch_offsets;
  }
  return shards;
}

std::vector<std::vector<std::int64_t>> StepBatch::group_sizes() const {
  std::vector<std::vector<std::int64_t>> sizes;
  for (const WorkerShare& share : shares) {
    std::vector<std::int64_t>& of_worker = sizes.emplace_back();
    for (const SampleGroup& group : share.groups)
      of_worker.push_back(static_cast<std::int64_t>(group.samples.size()));
  }
  return sizes;
}

std::vector<std::int64_t> StepBatch::tokens() const {
  std::vector<std::int64_t> tokens;
  for (const std::vector<std::int64_t>& of_worker : tokens_by_sample())
    tokens.push_back(std::accumulate(of_worker.begin(), of_worker.end(), std::int64_t{0}));
  return tokens;
}

std::vector<std::vector<std::int64_t>> StepBatch::tokens_by_sample() const {
  return by_worker(
      [](const Sample& sample) { return sample.prompt_tokens + sample.response_tokens; });
}

RowLeaves StepBatch::sample_leaves() const {
  RowLeaves of_batch{.count = leaves};
  if (leaves == 0) return of_batch;
  for (const WorkerShare& share : shares) {
    std::vector<std::int64_t>& of_worker = of_batch.of_rows.emplace_back();
    for (const SampleGroup& group : share.groups)
      of_worker.insert(of_worker.end(), group.samples.size(), group.leaf);
  }
  return of_batch;
}

std::vector<std::int64_t> StepBatch::prompt_of_samples() const {
  std::vector<std::int64_t> prompts;
  for (const WorkerShare& share : shares) {
    for (const SampleGroup& group : share.groups)
      prompts.insert(prompts.end(), group.samples.size(), group.prompt);
  }
  return prompts;
}

Status StepBatch::take(const std::vector<Generated>& generated) {
  CHECK(generated.size() == shares.size());
  for (std::size_t worker = 0; worker < shares.size(); ++worker) {
    shares[worker].batch = generated[worker].batch;
    const Status taken = take_lengths(shares[worker], generated[worker].summary);
    if (!taken.ok()) return taken;
  }
  return {};
}

Status StepBatch::take_scores(std::vector<RewardReport> made) {
  for (WorkerShare& share : shares) {
    for (SampleGroup& group : share.groups) {
      const RewardReport& report = made[static_cast<std::size_t>(group.origin.worker)];
      const std::size_t first = static_cast<std::size_t>(group.origin.row) * group.samples.size();
      if (report.scores.size() < first + group.samples.size())
        return runtime::internal_error("the reward scored another number of samples");
      for (std::size_t i = 0; i < group.samples.size(); ++i)
        take_score(group.samples[i], report, first + i);
    }
  }
  std::move(made.begin(), made.end(), std::back_inserter(reports));
  return {};
}

void StepBatch::append(const StepBatch& fresh, const std::vector<std::vector<std::int64_t>>& rows) {
  CHECK(fresh.shares.size() == rows.size());
  const std::int64_t first = prompts();
  shares.resize(fresh.shares.size());
  std::vector<std::int64_t> order;
  for (std::size_t worker = 0; worker < rows.size(); ++worker) {
    for (const std::int64_t row : rows[worker])
      order.push_back(fresh.shares[worker].groups[static_cast<std::size_t>(row)].prompt);
  }
  std::sort(order.begin(), order.end());
  for (std::size_t worker = 0; worker < rows.size(); ++worker) {
    for (const std::int64_t row : rows[worker]) {
      SampleGroup group = fresh.shares[worker].groups[static_cast<std::size_t>(row)];
      const auto place = std::lower_bound(order.begin(), order.end(), group.prompt);
      group.prompt = first + (place - order.begin());
      shares[worker].groups.push_back(std::move(group));
    }
  }
}

void StepBatch::cut_mini_batches(std::int64_t mini_batch_prompts) {
  CHECK(mini_batch_prompts > 0);
  const std::int64_t all_prompts = prompts();
  for (WorkerShare& share : shares) {
    share.mini_batch_offsets = {0};
    for (std::int64_t end = mini_batch_prompts; end < all_prompts + mini_batch_prompts;
         end += mini_batch_prompts) {
      const auto behind = std::lower_bound(
          share.groups.begin(), share.groups.end(), end,
          [](const SampleGroup& group, std::int64_t prompt) { return group.prompt < prompt; });
      share.mini_batch_offsets.push_back(behind - share.groups.begin());
    }
  }
}

void StepBatch::place(const BalancedShards& balanced) {
  CHECK(balanced.places.size() == shares.size());
  std::vector<WorkerShare> placed(shares.size());
  for (std::size_t worker = 0; worker < placed.size(); ++worker) {
    placed[worker].batch = shares[worker].batch;
    placed[worker].mini_batch_offsets = balanced.shards[worker].mini_batch_offsets;
    for (std::size_t row = 0; row < balanced.places[worker].size(); ++row) {
      const PromptPlace& from = balanced.places[worker][row];
      placed[worker].groups.push_back(std::move(shares[static_cast<std::size_t>(from.worker)]
                                                    .groups[static_cast<std::size_t>(from.row)]));
      if (!balanced.leaves.empty())
        placed[worker].groups.back().leaf = balanced.leaves[worker][row];
    }
  }
  shares = std::move(placed);
}

}  // namespace rl
