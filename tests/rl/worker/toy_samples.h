// Samples of the toy tokenizer, without a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rl/batch/rollout_batch.h"
#include "rl/data/toy.h"
#include "rl/tokenizer/tokenizer.h"

namespace rl::testing {

/// Of one prompt, "sort ba": each response has a token a letter and one that ends it.
inline RolloutBatch toy_samples(const Tokenizer& tokenizer,
                                const std::vector<std::string>& responses) {
  RolloutBatch batch;
  batch.prompts.append(*tokenizer.encode("sort ba", false));
  for (const std::string& response : responses) {
    std::vector<std::int32_t> ids = *tokenizer.encode(response, false);
    ids.push_back(kToyEndId);
    batch.responses.append(ids);
    batch.prompt_of.push_back(0);
    batch.stopped.push_back(1);
  }
  batch.logprobs.assign(batch.responses.values.size(), -1.0F);
  return batch;
}

}  // namespace rl::testing
