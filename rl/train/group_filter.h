// Dynamic sampling: which prompts of a round of generation are worth training on, and how they
// become a step's. Plain lists.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rl/train/batch_plan.h"

namespace rl {

/// Of each worker the rows of its share whose responses did not all score the same: the others have
/// no advantage to give. At most `wanted` in all, in the order of the round. `scores[w]` are those
/// of worker w's samples, `samples_per_prompt` of each prompt. A response alone always counts,
/// unless it has no score: a prompt of which `left_out[w]` marks a sample is not kept. Yu et al.
/// 2025, arXiv:2503.14476, section 3.2.
std::vector<std::vector<std::int64_t>> informative_prompts(
    const std::vector<PromptShard>& shards, const std::vector<std::vector<double>>& scores,
    const std::vector<std::vector<std::uint8_t>>& left_out, std::int64_t samples_per_prompt,
    std::int64_t wanted);

/// Puts those rows of `fresh` behind the prompts of `kept` (as many shards; none at all at first):
/// they are numbered on, in the order of the round.
void append_prompts(std::vector<PromptShard>& kept, const std::vector<PromptShard>& fresh,
                    const std::vector<std::vector<std::int64_t>>& rows);

/// Where mini-batches of so many prompts begin within each worker's share: the k-th holds prompts
/// [k * mini_batch_prompts, ...) of the step, on whichever worker they are.
void cut_mini_batches(std::vector<PromptShard>& shards, std::int64_t mini_batch_prompts);

/// How many prompts there are on all workers.
std::int64_t count_prompts(std::span<const PromptShard> shards);

}  // namespace rl
