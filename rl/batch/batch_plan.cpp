#include "rl/batch/batch_plan.h"

#include <algorithm>
#include <utility>

#include "runtime/core/check.h"

namespace rl {
namespace {

std::vector<MicroBatchLimits> one_kind(std::span<const PassLimits> limits,
                                       MicroBatchLimits PassLimits::*kind) {
  std::vector<MicroBatchLimits> of_workers;
  for (const PassLimits& of_worker : limits) of_workers.push_back(of_worker.*kind);
  return of_workers;
}

// The rows of a leaf, where those of the leaves before it end at `begin`.
MicroBatch rows_of_leaf(const std::vector<std::int64_t>& leaves, std::int64_t begin,
                        std::int64_t leaf) {
  MicroBatch rows{begin, begin};
  while (rows.last < std::ssize(leaves) && leaves[static_cast<std::size_t>(rows.last)] == leaf)
    ++rows.last;
  return rows;
}

// A worker's passes over rows that begin at `begin`.
void shift(std::vector<MicroBatch>& passes, std::int64_t begin) {
  for (MicroBatch& rows : passes) rows = {begin + rows.first, begin + rows.last};
}

}  // namespace

std::vector<PromptShard> shard_prompts(std::int64_t prompts, std::int64_t mini_batch_prompts,
                                       std::int64_t workers) {
  CHECK(workers > 0);
  CHECK(mini_batch_prompts > 0);
  std::vector<PromptShard> shards(static_cast<std::size_t>(workers));
  for (std::int64_t begin = 0; begin < prompts; begin += mini_batch_prompts) {
    const std::int64_t count = std::min(mini_batch_prompts, prompts - begin);
    for (std::int64_t worker = 0; worker < workers; ++worker) {
      PromptShard& shard = shards[static_cast<std::size_t>(worker)];
      for (std::int64_t i = count * worker / workers; i < count * (worker + 1) / workers; ++i)
        shard.prompts.push_back(begin + i);
      shard.mini_batch_offsets.push_back(static_cast<std::int64_t>(shard.prompts.size()));
    }
  }
  return shards;
}

std::vector<std::vector<MiniBatch>> plan_mini_batches(
    const std::vector<PromptShard>& shards, std::int64_t samples_per_prompt,
    std::span<const std::vector<std::int64_t>> response_tokens, std::span<const SampleUse> uses) {
  std::vector<std::vector<std::int64_t>> samples_of;
  for (const PromptShard& shard : shards)
    samples_of.emplace_back(shard.prompts.size(), samples_per_prompt);
  return plan_mini_batches(shards, samples_of, response_tokens, uses);
}

std::vector<std::vector<MiniBatch>> plan_mini_batches(
    const std::vector<PromptShard>& shards, std::span<const std::vector<std::int64_t>> samples_of,
    std::span<const std::vector<std::int64_t>> response_tokens, std::span<const SampleUse> uses) {
  CHECK(!shards.empty());
  CHECK(shards.size() == response_tokens.size());
  CHECK(shards.size() == samples_of.size());
  CHECK(uses.empty() || uses.size() == shards.size());
  const std::size_t mini_batches = shards.front().mini_batch_offsets.size() - 1;
  std::vector<std::vector<MiniBatch>> plan(shards.size());
  std::vector<std::int64_t> done(shards.size(),
                                 0);  // samples of each worker in the mini-batches so far
  for (std::size_t k = 0; k < mini_batches; ++k) {
    std::int64_t tokens_total = 0;
    std::int64_t samples_total = 0;
    std::int64_t positive_total = 0;
    std::vector<MiniBatch> parts(shards.size());
    for (std::size_t w = 0; w < shards.size(); ++w) {
      MiniBatch& mine = parts[w];
      mine.first_sample = done[w];
      for (std::int64_t p = shards[w].mini_batch_offsets[k];
           p < shards[w].mini_batch_offsets[k + 1]; ++p)
        done[w] += samples_of[w][static_cast<std::size_t>(p)];
      mine.last_sample = done[w];
      CHECK(mine.last_sample <= static_cast<std::int64_t>(response_tokens[w].size()));
      for (auto s = static_cast<std::size_t>(mine.first_sample);
           s < static_cast<std::size_t>(mine.last_sample); ++s) {
        const std::int64_t repeats =
            uses.empty() || uses[w].repeats.empty() ? 1 : uses[w].repeats[s];
        const bool positive =
            !uses.empty() && !uses[w].positive.empty() && uses[w].positive[s] != 0;
        samples_total += repeats;
        tokens_total += repeats * response_tokens[w][s];
        if (positive) positive_total += repeats * response_tokens[w][s];
      }
    }
    if (samples_total == 0) continue;
    for (std::size_t w = 0; w < shards.size(); ++w) {
      parts[w].tokens_total = tokens_total;
      parts[w].samples_total = samples_total;
      parts[w].positive_tokens_total = positive_total;
      plan[w].push_back(parts[w]);
    }
  }
  return plan;
}

std::vector<MicroBatch> plan_micro_batches(std::span<const std::int64_t> lengths,
                                           const MicroBatchLimits& limits) {
  std::vector<MicroBatch> micro_batches;
  std::int64_t tokens = 0;
  for (const std::int64_t length : lengths) {
    const std::int64_t rows =
        micro_batches.empty() ? 0 : micro_batches.back().last - micro_batches.back().first;
    const bool full = (limits.samples_max > 0 && rows >= limits.samples_max) ||
                      (limits.tokens_max > 0 && rows > 0 && tokens + length > limits.tokens_max);
    if (micro_batches.empty() || full) {
      const std::int64_t begin = micro_batches.empty() ? 0 : micro_batches.back().last;
      micro_batches.push_back({begin, begin});
      tokens = 0;
    }
    ++micro_batches.back().last;
    tokens += length;
  }
  return micro_batches;
}

std::vector<std::vector<MicroBatch>> plan_rounds(std::span<const std::vector<std::int64_t>> lengths,
                                                 std::span<const MicroBatchLimits> limits) {
  CHECK(lengths.size() == limits.size());
  std::vector<std::vector<MicroBatch>> rounds;
  std::size_t count = 0;
  for (std::size_t w = 0; w < lengths.size(); ++w) {
    rounds.push_back(plan_micro_batches(lengths[w], limits[w]));
    count = std::max(count, rounds.back().size());
  }
  for (std::size_t w = 0; w < lengths.size(); ++w) {
    const auto end = static_cast<std::int64_t>(lengths[w].size());
    rounds[w].resize(count, MicroBatch{end, end});
  }
  return rounds;
}

std::vector<std::vector<MicroBatch>> plan_scoring(std::span<const std::vector<std::int64_t>> tokens,
                                                  std::span<const PassLimits> limits) {
  return plan_rounds(tokens, one_kind(limits, &PassLimits::scoring));
}

std::vector<LearningPasses> plan_learning(std::span<const std::vector<std::int64_t>> lengths,
                                          std::span<const MicroBatchLimits> limits,
                                          const RowLeaves& leaves) {
  const std::size_t workers = lengths.size();
  std::vector<LearningPasses> plan(workers);
  if (leaves.count == 0) {
    std::vector<std::vector<MicroBatch>> passes = plan_rounds(lengths, limits);
    for (std::size_t w = 0; w < workers; ++w) plan[w].micro_batches = std::move(passes[w]);
    return plan;
  }
  CHECK(leaves.of_rows.size() == workers);
  std::vector<std::int64_t> next(workers, 0);
  for (std::int64_t first = 0; first < leaves.count; first += std::ssize(lengths)) {
    std::vector<std::vector<std::int64_t>> of_leaf;
    GradientRound round;
    for (std::size_t w = 0; w < workers; ++w) {
      const MicroBatch rows =
          rows_of_leaf(leaves.of_rows[w], next[w], first + static_cast<std::int64_t>(w));
      of_leaf.emplace_back(lengths[w].begin() + rows.first, lengths[w].begin() + rows.last);
      round.adds.push_back(rows.idle() ? 0 : 1);
    }
    std::vector<std::vector<MicroBatch>> passes = plan_rounds(of_leaf, limits);
    round.passes = std::ssize(passes.front());
    for (std::size_t w = 0; w < workers; ++w) {
      shift(passes[w], next[w]);
      next[w] += std::ssize(of_leaf[w]);
      plan[w].micro_batches.insert(plan[w].micro_batches.end(), passes[w].begin(), passes[w].end());
      round.leaf = first + static_cast<std::int64_t>(w);
      plan[w].rounds.push_back(round);
    }
  }
  for (std::size_t w = 0; w < workers; ++w) CHECK(next[w] == std::ssize(lengths[w]));
  return plan;
}

void add_micro_batches(std::vector<std::vector<MiniBatch>>& plan,
                       std::span<const std::vector<std::int64_t>> tokens,
                       std::span<const PassLimits> limits, const RowLeaves& leaves) {
  CHECK(plan.size() == tokens.size());
  const std::size_t mini_batches = plan.empty() ? 0 : plan.front().size();
  for (std::size_t k = 0; k < mini_batches; ++k) {
    std::vector<std::vector<std::int64_t>> lengths;
    RowLeaves of_mini_batch{.count = leaves.count};
    for (std::size_t w = 0; w < plan.size(); ++w) {
      const auto own = [&](const std::vector<std::int64_t>& of_samples) {
        return std::vector<std::int64_t>(of_samples.begin() + plan[w][k].first_sample,
                                         of_samples.begin() + plan[w][k].last_sample);
      };
      lengths.push_back(own(tokens[w]));
      if (leaves.count > 0) of_mini_batch.of_rows.push_back(own(leaves.of_rows[w]));
    }
    auto learned = plan_learning(lengths, one_kind(limits, &PassLimits::learning), of_mini_batch);
    auto scored = plan_rounds(lengths, one_kind(limits, &PassLimits::scoring));
    for (std::size_t w = 0; w < plan.size(); ++w) {
      MiniBatch& mine = plan[w][k];
      mine.micro_batches = std::move(learned[w].micro_batches);
      mine.rounds = std::move(learned[w].rounds);
      mine.scoring_batches = std::move(scored[w]);
      shift(mine.micro_batches, mine.first_sample);
      shift(mine.scoring_batches, mine.first_sample);
    }
  }
}

runtime::Result<std::vector<MicroBatch>> passes_over(const MicroBatch& rows,
                                                     std::span<const MicroBatch> planned) {
  if (planned.empty()) return std::vector{rows};
  std::int64_t next = rows.first;
  bool follow = true;
  for (const MicroBatch& part : planned) {
    follow = follow && part.first == next && part.last >= part.first;
    next = part.last;
  }
  if (!follow || next != rows.last)
    return runtime::invalid_argument("micro-batches of other rows than there are");
  return std::vector<MicroBatch>(planned.begin(), planned.end());
}

}  // namespace rl
