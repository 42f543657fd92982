// Private to rl/rollout: a request that the engine works on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rl/rollout/beam_search.h"
#include "rl/rollout/engine.h"
#include "rl/rollout/sequence.h"

namespace rl {

/// Stays where it is: sequences point into it.
struct RunningRequest {
  RequestId id = 0;
  Request request;
  std::vector<Completion> completions;               // of all samples; of beam search n
  std::vector<std::unique_ptr<Sequence>> sequences;  // one per sample, or per beam
  std::int64_t open =
      0;  // sequences that have not finished; of beam search 1 until the search is over
  EngineProgress* progress = nullptr;  // of the generate() that it belongs to
  bool streams = false;                // its tokens are told as they come

  std::optional<BeamSearch> beams;
  std::vector<std::vector<BeamCandidate>>
      candidates;                            // of the live beams, as far as they are known
  std::vector<std::uint64_t> beam_versions;  // the weights of each round
};

/// Notes by which weights the completion's next token was chosen.
inline void stamp_version(Completion& completion, std::uint64_t version) {
  std::vector<VersionRun>& runs = completion.weight_versions;
  if (runs.empty() || runs.back().version != version) runs.push_back({.version = version});
  ++runs.back().tokens;
}

}  // namespace rl
