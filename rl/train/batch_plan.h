// Who computes what in a step: prompts to workers, samples to mini-batches and micro-batches. Pure
// arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

namespace rl {

/// The prompts of one worker, as indices into the step's batch; mini-batch k holds
/// prompts[offsets[k] .. offsets[k + 1]).
struct PromptShard {
  std::vector<std::int64_t> prompts;
  std::vector<std::int64_t> mini_batch_offsets{0};

  bool operator==(const PromptShard&) const = default;
};

/// Cuts every mini-batch evenly over the workers, so that an optimizer step sees the same prompts
/// however many workers there are, and no sample has to move to another worker. A worker may get
/// nothing of a small mini-batch. The last mini-batch may be smaller.
std::vector<PromptShard> shard_prompts(std::int64_t prompts, std::int64_t mini_batch_prompts,
                                       std::int64_t workers);

/// One optimizer step as one worker sees it: its samples, and how much there is on all workers
/// together. Sums over the worker's tokens divided by these totals add up, over the workers, to the
/// loss of the whole mini-batch.
struct MiniBatch {
  std::int64_t first_sample = 0;  // into the worker's RolloutBatch
  std::int64_t last_sample = 0;   // one past the end
  std::int64_t tokens_total = 0;
  std::int64_t samples_total = 0;
  std::int64_t positive_tokens_total = 0;  // of responses that were right

  auto fields() {
    return std::tie(first_sample, last_sample, tokens_total, samples_total, positive_tokens_total);
  }
  bool operator==(const MiniBatch&) const = default;
};

/// How much each sample of one worker counts; empty lists: all of them once, none of them right.
struct SampleUse {
  std::vector<std::int32_t>
      repeats;  // how often a sample counts, as if it stood there so often; 0: not at all
  std::vector<std::uint8_t> positive;  // 1: its response was right

  auto fields() { return std::tie(repeats, positive); }
  bool operator==(const SampleUse&) const = default;
};

/// Mini-batches of every worker. `response_tokens[w]` are how many tokens of worker w's samples are
/// learned, `samples_per_prompt` of each prompt; `uses[w]` how much they count (no uses: all
/// alike).
std::vector<std::vector<MiniBatch>> plan_mini_batches(
    const std::vector<PromptShard>& shards, std::int64_t samples_per_prompt,
    std::span<const std::vector<std::int64_t>> response_tokens,
    std::span<const SampleUse> uses = {});

/// As above, where prompts have different numbers of samples left: `samples_of[w]` has one for each
/// prompt of worker w. Mini-batches of which nothing is left are not in the plan.
std::vector<std::vector<MiniBatch>> plan_mini_batches(
    const std::vector<PromptShard>& shards, std::span<const std::vector<std::int64_t>> samples_of,
    std::span<const std::vector<std::int64_t>> response_tokens,
    std::span<const SampleUse> uses = {});

/// Limits of one forward and backward pass; 0 is none.
struct MicroBatchLimits {
  std::int64_t samples_max = 0;
  std::int64_t tokens_max = 0;

  bool operator==(const MicroBatchLimits&) const = default;
};

/// Cuts samples 0 .. lengths.size() in order into runs within the limits; returns where each
/// begins, and the end. A sample longer than tokens_max stands alone.
std::vector<std::int64_t> plan_micro_batches(std::span<const std::int64_t> lengths,
                                             const MicroBatchLimits& limits);

}  // namespace rl
