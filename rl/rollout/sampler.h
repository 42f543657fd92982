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
  std::span<const float> logits;  // [vocab]
  std::span<const std::int32_t>
      history;  // prompt and completion so far: what penalties count as repeated
  std::span<const std::int32_t> forbidden;  // ids that may not be chosen, see forbidden_ids()
  std::int64_t generated = 0;               // how many of `history` are the completion
  std::uint64_t sample = 0;                 // with params->seed and position: the draw
  std::uint64_t position = 0;
};

struct SampledToken {
  std::int32_t id = -1;         // -1: no token can be chosen, since the logits are not finite
  float logprob = 0;            // as Completion::logprobs
  float processed_logprob = 0;  // as Completion says, where asked for; so are the next two
  std::vector<TokenScore> top = {};
  std::vector<TokenScore> top_processed = {};
};

/// Chooses a token for every row. A row's result depends on that row alone. In this order: what
/// process_logits() does, temperature, top-k, top-p over what top-k left, min-p (arXiv:2407.01082),
/// and one draw. The draw inverts the cumulative sum in the order of ids (after top-k or top-p: of
/// falling probability).
void sample_tokens(kernel::ThreadPool& pool, std::span<const SampleRow> rows,
                   std::span<SampledToken> tokens);

/// The ids of the `count` largest logits, or of all, largest first, the smaller id among equals. No
/// logit may be NaN.
std::vector<std::int32_t> top_ids(std::span<const float> logits, std::int64_t count);

/// The `count` likeliest tokens, likeliest first, with their log-probs under softmax(logits /
/// temperature); without those of probability 0.
std::vector<TokenScore> top_scores(kernel::ThreadPool& pool, std::span<const float> logits,
                                   float temperature, std::int64_t count);

}  // namespace rl
