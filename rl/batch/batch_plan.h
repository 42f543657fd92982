// The division of a step: prompts to workers, samples to mini-batches and micro-batches. Pure
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

/// Cuts every mini-batch evenly over the workers. An optimizer step thus sees the same prompts for
/// any number of workers, and no sample has to move to another worker. A worker may get nothing of
/// a small mini-batch. The last mini-batch may be smaller.
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

/// A part of a mini-batch's gradient. A mini-batch is cut into leaves, whatever the number of
/// workers; worker l % workers computes leaf l, in round l / workers. The gradients of leaves are
/// added up in their order, so that their sum has the same bits on any number of workers.
struct GradientRound {
  std::int64_t leaf = 0;    // this worker's
  std::int64_t passes = 0;  // its micro-batches, as many on every worker; they follow those
                            // of the round before
  std::vector<std::uint8_t> adds = {};  // by worker: 1: its leaf has samples

  auto fields() { return std::tie(leaf, passes, adds); }
  bool operator==(const GradientRound&) const = default;
};

/// One optimizer step as one worker sees it: its samples, and the totals over all workers. Sums
/// over the worker's tokens divided by these totals add up, over the workers, to the loss of the
/// whole mini-batch.
struct MiniBatch {
  std::int64_t first_sample = 0;  // into the worker's RolloutBatch
  std::int64_t last_sample = 0;   // one past the end
  std::int64_t tokens_total = 0;
  std::int64_t samples_total = 0;
  std::int64_t positive_tokens_total = 0;  // of correct responses
  /// Its passes, as many on every worker; empty: one pass.
  std::vector<MicroBatch> micro_batches = {};
  std::vector<MicroBatch> scoring_batches = {};  // the same without a backward pass
  std::vector<GradientRound> rounds = {};        // of micro_batches; empty: one leaf per worker

  auto fields() {
    return std::tie(first_sample, last_sample, tokens_total, samples_total, positive_tokens_total,
                    micro_batches, scoring_batches, rounds);
  }
  bool operator==(const MiniBatch&) const = default;
};

/// The weights of one worker's samples; empty lists: each counts once, none is correct.
struct SampleUse {
  // How often a sample counts, as if it were repeated; 0: not at all.
  std::vector<std::int32_t> repeats;
  std::vector<std::uint8_t> positive;  // 1: its response is correct

  auto fields() { return std::tie(repeats, positive); }
  bool operator==(const SampleUse&) const = default;
};

/// Mini-batches of every worker. `response_tokens[w]`: the number of learned tokens of each sample
/// of worker w, `samples_per_prompt` of them for each prompt. `uses[w]`: their weights (no uses:
/// all alike).
std::vector<std::vector<MiniBatch>> plan_mini_batches(
    const std::vector<PromptShard>& shards, std::int64_t samples_per_prompt,
    std::span<const std::vector<std::int64_t>> response_tokens,
    std::span<const SampleUse> uses = {});

/// As above, for prompts with different numbers of samples: `samples_of[w]` has the number for each
/// prompt of worker w. Empty mini-batches are not in the plan.
std::vector<std::vector<MiniBatch>> plan_mini_batches(
    const std::vector<PromptShard>& shards, std::span<const std::vector<std::int64_t>> samples_of,
    std::span<const std::vector<std::int64_t>> response_tokens,
    std::span<const SampleUse> uses = {});

/// One supervised optimizer step as one worker sees it.
struct SupervisedPlan {
  std::int64_t tokens_total = 0;  // learned tokens of all workers
  double learning_rate = 0.0;
  /// Its passes, as many on every worker; empty: one pass.
  std::vector<MicroBatch> micro_batches = {};
  std::vector<GradientRound> rounds = {};  // of micro_batches; empty: one leaf per worker

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
/// is a run by itself. No rows: no micro-batches.
std::vector<MicroBatch> plan_micro_batches(std::span<const std::int64_t> lengths,
                                           const MicroBatchLimits& limits);

/// The same for every worker w, with rows lengths[w] and limits[w]: as many micro-batches on each
/// worker, idle ones after its rows.
std::vector<std::vector<MicroBatch>> plan_rounds(std::span<const std::vector<std::int64_t>> lengths,
                                                 std::span<const MicroBatchLimits> limits);

/// plan_rounds() over samples that are scored; `tokens[w]` are prompt and response tokens of worker
/// w's samples.
std::vector<std::vector<MicroBatch>> plan_scoring(std::span<const std::vector<std::int64_t>> tokens,
                                                  std::span<const PassLimits> limits);

/// The number of leaves (see GradientRound) of a mini-batch, and by worker the leaf of each row, in
/// ascending order within a mini-batch. 0: it is not cut.
struct RowLeaves {
  std::int64_t count = 0;
  std::vector<std::vector<std::int64_t>> of_rows = {};
};

/// A worker's learning passes and their rounds; no rounds: one leaf per worker.
struct LearningPasses {
  std::vector<MicroBatch> micro_batches = {};
  std::vector<GradientRound> rounds = {};
};

/// plan_rounds(), leaf by leaf.
std::vector<LearningPasses> plan_learning(std::span<const std::vector<std::int64_t>> lengths,
                                          std::span<const MicroBatchLimits> limits,
                                          const RowLeaves& leaves);

/// Adds micro-batches to each mini-batch of a plan: for learning (by leaf) and for scoring.
void add_micro_batches(std::vector<std::vector<MiniBatch>>& plan,
                       std::span<const std::vector<std::int64_t>> tokens,
                       std::span<const PassLimits> limits, const RowLeaves& leaves = {});

/// The passes over `rows` of a worker: `planned`, or a single one if `planned` is empty.
/// kInvalidArgument: `planned` does not cover exactly these rows in order.
runtime::Result<std::vector<MicroBatch>> passes_over(const MicroBatch& rows,
                                                     std::span<const MicroBatch> planned);

}  // namespace rl
