// Changes to logits before a token is chosen: penalties, biases, and forbidden tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rl/rollout/request.h"

namespace rl {

/// What penalties and bans of one place in a sequence depend on.
struct LogitsContext {
  const SamplingParams* params = nullptr;
  std::span<const std::int32_t> history;    // prompt and completion so far
  std::int64_t generated = 0;               // how many of them are the completion
  std::span<const std::int32_t> forbidden;  // ids that may not be chosen, from forbidden_ids()

  /// Whether process_logits() would change anything.
  bool changes_logits() const;
};

/// The ids that may not come next: stop ids before min_new_tokens, and the last ids of bad words
/// whose beginning stands there.
std::vector<std::int32_t> forbidden_ids(const SamplingParams& params,
                                        std::span<const std::int32_t> eos_ids,
                                        std::span<const std::int32_t> history,
                                        std::int64_t generated);

/// `out` becomes `logits` with all of it: the repetition penalty (Keskar et al. 2019,
/// arXiv:1909.05858), presence and frequency penalties, and biases. What is forbidden becomes
/// -infinity. Ids outside the vocabulary are passed over.
void process_logits(const LogitsContext& context, std::span<const float> logits,
                    std::vector<float>& out);

}  // namespace rl
