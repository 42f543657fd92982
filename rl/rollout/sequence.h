// Private to rl/rollout: one sample in progress.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rl/rollout/completion_text.h"
#include "rl/rollout/prefix_cache.h"
#include "rl/rollout/request.h"

namespace rl {

/// A sequence of tokens, some of whose keys and values are in the cache.
/// Invariant: blocks covers [0, computed), or swapped does; computed < tokens.size() until it is
/// finished or held, since the last token's logits are wanted.
struct Sequence {
  const Request* request = nullptr;  // null: finished
  Completion* completion = nullptr;  // says which request's it is
  std::int64_t rank = 0;             // of the scheduling policy: smaller first
  std::uint64_t order = 0;  // of arrival, among equals: request by request, sample by sample
  std::vector<std::int32_t> tokens;  // prompt and what was generated
  std::vector<std::int32_t> blocks;  // the cache's, in order of position
  std::int64_t computed = 0;         // tokens whose keys and values are there
  std::vector<Sequence*>
      siblings;       // further samples of the prompt, which start when its last token is read
  bool held = false;  // a beam that waits for the others: not to be scheduled, and the first to
                      // give its blocks
  bool reads_prompt_rows =
      false;  // its prompt is to be scored: no part of it may come from the prefix cache
  std::int64_t length_max = 0;  // that it may reach
  std::int64_t stretch = 0;     // of its angles, which follow from length_max
  PrefixCache::Place place;
  std::vector<float> swapped;            // its blocks' content while it has none
  std::unique_ptr<CompletionText> text;  // where text or stop strings are asked for
  std::size_t beam = 0;                  // which of the request's live beams

  std::int64_t prompt_tokens() const {
    return static_cast<std::int64_t>(request->prompt_ids.size());
  }
  std::int64_t length() const { return static_cast<std::int64_t>(tokens.size()); }
  std::int64_t pending() const { return length() - computed; }
  std::int64_t generated() const { return length() - prompt_tokens(); }
};

}  // namespace rl
