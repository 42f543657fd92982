// Private to rl/rollout: one sample on its way.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rl/rollout/request.h"

namespace rl {

/// A sequence of tokens, some of whose keys and values are in the cache.
/// Invariant: blocks covers [0, computed); computed < tokens.size() until it is finished, since the last token's logits are wanted.
struct Sequence {
  const Request* request = nullptr;
  Completion* completion = nullptr;
  std::uint64_t order = 0;              // of arrival: request by request, sample by sample
  std::vector<std::int32_t> tokens;     // prompt and what was generated
  std::vector<std::int32_t> blocks;     // the cache's, in order of position
  std::int64_t computed = 0;            // tokens whose keys and values are there
  std::vector<Sequence*> siblings;      // further samples of the prompt, which start when its last token is read

  std::int64_t prompt_tokens() const { return static_cast<std::int64_t>(request->prompt_ids.size()); }
  std::int64_t length() const { return static_cast<std::int64_t>(tokens.size()); }
  std::int64_t pending() const { return length() - computed; }
  std::int64_t generated() const { return length() - prompt_tokens(); }
};

}  // namespace rl
