// From logits to a token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rl/kernel/thread_pool.h"
#include "rl/rollout/request.h"

namespace rl {

/// One row to choose a token for.
struct SampleRow {
  const SamplingParams* params = nullptr;
  std::span<const float> logits;            // [vocab]
  std::span<const std::int32_t> history;    // prompt and completion so far: what repetition_penalty counts as repeated
  std::span<const std::int32_t> forbidden;  // ids that may not be chosen, for instance stop ids before min_new_tokens
  std::uint64_t sample = 0;                 // with params->seed and position: the draw
  std::uint64_t position = 0;
};

struct SampledToken {
  std::int32_t id = -1;  // -1: no token can be chosen, since the logits are not finite
  float logprob = 0;     // as Completion::logprobs
};

/// Chooses a token for every row. A row's result depends on that row alone.
/// The repetition penalty (Keskar et al. 2019, arXiv:1909.05858), temperature, then top-k, then top-p over what top-k left, then min-p (arXiv:2407.01082), then one draw by inversion of the cumulative sum in the order of ids
/// (after top-k or top-p: of falling probability).
void sample_tokens(kernel::ThreadPool& pool, std::span<const SampleRow> rows, std::span<SampledToken> tokens);

}  // namespace rl
