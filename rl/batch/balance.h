// Assignment of samples to workers, so that all train about as many tokens. Plain lists; nothing
// here depends on chance.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "rl/batch/batch_plan.h"

namespace rl {

/// Which of `workers` gets each item: the largest first, each to who has least so far (Graham 1969,
/// longest processing time first). Equal ones in their order.
std::vector<std::int64_t> assign_evenly(std::span<const std::int64_t> sizes, std::int64_t workers);

/// The same as lists: the items of each worker, in their order.
std::vector<std::vector<std::int64_t>> spread_evenly(std::span<const std::int64_t> sizes,
                                                     std::int64_t workers);

/// Rows dealt to workers.
struct DealtRows {
  std::vector<std::vector<std::int64_t>> rows;  // by worker
  RowLeaves leaves = {};                        // of those
};

/// spread_evenly(), or, with `leaves` (see GradientRound), over that many leaves, which workers
/// take in turns.
DealtRows deal_rows(std::span<const std::int64_t> sizes, std::int64_t workers, std::int64_t leaves);

/// Where a prompt's samples were generated: which worker, and which row of its share.
struct PromptPlace {
  std::int64_t worker = 0;
  std::int64_t row = 0;

  auto fields() { return std::tie(worker, row); }
  bool operator==(const PromptPlace&) const = default;
};

/// places[w][i]: where what is now the i-th prompt of worker w was.
using PromptPlaces = std::vector<std::vector<PromptPlace>>;

struct BalancedShards {
  std::vector<PromptShard> shards;
  PromptPlaces places;
  // leaves[w][i]: the leaf (see GradientRound) of what is now the i-th prompt of worker w; empty
  // where mini-batches are not cut into leaves.
  std::vector<std::vector<std::int64_t>> leaves = {};
};

/// The same prompts in the same mini-batches, spread again within each. Workers take an optimizer
/// step together, so that each mini-batch takes as long as the worker with most of its tokens.
/// `tokens[w][row]` are those of a prompt with its responses. Nothing: there is nothing to be won
/// that is worth moving samples for.
std::optional<BalancedShards> balance_shards(const std::vector<PromptShard>& shards,
                                             const std::vector<std::vector<std::int64_t>>& tokens);

/// The same prompts in the same mini-batches, each cut into that many leaves of whole prompts.
/// Leaves depend on the prompts alone, not on the number of workers or on who generated what. With
/// `evenly` they have about as many tokens each, otherwise as many prompts, in their order.
BalancedShards deal_leaves(const std::vector<PromptShard>& shards,
                           const std::vector<std::vector<std::int64_t>>& tokens,
                           std::int64_t leaves, bool evenly);

}  // namespace rl
