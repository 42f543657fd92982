// Who computes what in a step: prompts to workers, samples to mini-batches and micro-batches. Pure
// arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "runtime/core/result.h"

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

/// Rows of a worker that one pass computes.
struct MicroBatch {
  std::int64_t first = 0;
  std::int64_t last = 0;  // one past the end

  bool idle() const { return first == last; }

  auto fields() { return std::tie(first, last); }
  bool operator==(const MicroBatch&) const = default;
};

/// A part of a mini-batch's gradient. A mini-batch is cut into leaves, however many workers there
/// are; leaf l is worker l % workers' in round l / workers. The gradients of leaves are added up in
/// their order, so that their sum has the same bits on any number of workers.
struct GradientRound {
  std::int64_t leaf = 0;    // this worker's
  std::int64_t passes = 0;  // its micro-batches, as many on every worker; behind those of the round
                            // before
  std::vector<std::uint8_t> adds = {};  // by worker: 1: its leaf has samples

  auto fields() { return std::tie(leaf, passes, adds); }
  bool operator==(const GradientRound&) const = default;
};

/// One optimizer step as one worker sees it: its samples, and how much there is on all workers
/// together. Sums over the worker's tokens divided by these totals add up, over the workers, to the
/// loss of the whole mini-batch.
struct MiniBatch {
  std::int64_t first_sample = 0;  // into the worker's RolloutBatch
  std::int64_t last_sample = 0;   // one past the end
  std::int64_t tokens_total = 0;
  std::int64_t samples_total = 0;
  std::int64_t positive_tokens_total = 0;  // of responses that were right
  std::vector<MicroBatch> micro_batches =
      {};  // its passes, as many on every worker; none: one pass
  std::vector<MicroBatch> scoring_batches = {};  // the same without a backward pass
  std::vector<GradientRound> rounds = {};  // what micro_batches are of; none: of one leaf a worker

  auto fields() {
    return std::tie(first_sample, last_sample, tokens_total, samples_total, positive_tokens_total,
                    micro_batches, scoring_batches, rounds);
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

/// One supervised optimizer step as one worker sees it.
struct SupervisedPlan {
  std::int64_t tokens_total = 0;  // to learn, of all workers
  double learning_rate = 0.0;
  std::vector<MicroBatch> micro_batches =
      {};                                  // its passes, as many on every worker; none: one pass
  std::vector<GradientRound> rounds = {};  // what they are of; none: of one leaf a worker

  auto fields() { return std::tie(tokens_total, learning_rate, micro_batches, rounds); }
  bool operator==(const SupervisedPlan&) const = default;
};

/// Limits of one forward and backward pass; 0 is none.
struct MicroBatchLimits {
  std::int64_t samples_max = 0;
  std::int64_t tokens_max = 0;

  auto fields() { return std::tie(samples_max, tokens_max); }
  bool operator==(const MicroBatchLimits&) const = default;
};

/// The limits of one worker's passes.
struct PassLimits {
  MicroBatchLimits learning = {};  // forward and backward
  MicroBatchLimits scoring = {};   // forward alone

  auto fields() { return std::tie(learning, scoring); }
  bool operator==(const PassLimits&) const = default;
};

/// Cuts rows 0 .. lengths.size() in order into runs within the limits. A row longer than tokens_max
/// stands alone. No rows: no micro-batches.
std::vector<MicroBatch> plan_micro_batches(std::span<const std::int64_t> lengths,
                                           const MicroBatchLimits& limits);

/// The same for every worker w, of rows lengths[w] within limits[w]: as many micro-batches on each,
/// idle ones behind its rows.
std::vector<std::vector<MicroBatch>> plan_rounds(std::span<const std::vector<std::int64_t>> lengths,
                                                 std::span<const MicroBatchLimits> limits);

/// plan_rounds() over samples that are scored; `tokens[w]` are prompt and response tokens of worker
/// w's samples.
std::vector<std::vector<MicroBatch>> plan_scoring(std::span<const std::vector<std::int64_t>> tokens,
                                                  std::span<const PassLimits> limits);

/// Into how many leaves (see GradientRound) a mini-batch is cut, and by worker the leaf of each
/// row, which grows within a mini-batch. 0: it is not cut.
struct RowLeaves {
  std::int64_t count = 0;
  std::vector<std::vector<std::int64_t>> of_rows = {};
};

/// A worker's passes that learn, and the rounds that they are of; no rounds: of one leaf a worker.
struct LearningPasses {
  std::vector<MicroBatch> micro_batches = {};
  std::vector<GradientRound> rounds = {};
};

/// plan_rounds(), leaf by leaf.
std::vector<LearningPasses> plan_learning(std::span<const std::vector<std::int64_t>> lengths,
                                          std::span<const MicroBatchLimits> limits,
                                          const RowLeaves& leaves);

/// Cuts each mini-batch of plan_mini_batches() so, to learn from it, leaf by leaf, and to score it.
void add_micro_batches(std::vector<std::vector<MiniBatch>>& plan,
                       std::span<const std::vector<std::int64_t>> tokens,
                       std::span<const PassLimits> limits, const RowLeaves& leaves = {});

/// The passes over `rows` that a worker was given: `planned`, or one where there are none.
/// kInvalidArgument: they are not all of these rows, in order.
runtime::Result<std::vector<MicroBatch>> passes_over(const MicroBatch& rows,
                                                     std::span<const MicroBatch> planned);

}  // namespace rl
