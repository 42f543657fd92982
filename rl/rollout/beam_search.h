// Beam search over one prompt: which beginnings go on, and which hypotheses are the best. Knows
// nothing of models.
#pragma once

#include <cstdint>
#include <vector>

#include "rl/rollout/request.h"

namespace rl {

/// One way on: token `id` behind beam `beam`.
struct BeamCandidate {
  std::size_t beam = 0;
  std::int32_t id = 0;
  float score = 0;    // log-probability of the token as processed; of the beam's tokens before it,
                      // score() is added by advance()
  float logprob = 0;  // of the token, as Completion::logprobs
};

/// A beginning of a completion.
struct Beam {
  std::vector<std::int32_t> ids;
  std::vector<float> logprobs;
  float score = 0;  // sum of the processed log-probabilities; of a hypothesis divided by its length
                    // to the power of the penalty
  std::size_t parent = 0;  // which beam of the round before it comes from
  FinishReason reason = FinishReason::kLength;
};

/// The rounds of transformers' beam search (generation/utils.py, 5.23), in its order of operations,
/// so that scores are the same numbers.
class BeamSearch {
 public:
  /// `stop_ids`: what ends a hypothesis, each once. `new_tokens_max`: at least 1.
  BeamSearch(const BeamSearchParams& params, std::vector<std::int32_t> stop_ids,
             std::int64_t new_tokens_max);

  /// How many candidates of each beam advance() needs at most: its likeliest, in any order.
  std::int64_t candidates_per_beam() const;

  /// The beams to continue with; one, empty, at the beginning; none when the search is over.
  const std::vector<Beam>& live() const { return live_; }

  /// One round, given candidates of every live beam. Returns the tokens it takes: one for each beam
  /// that goes on or ends.
  std::int64_t advance(std::vector<BeamCandidate> candidates);

  /// What was found so far, best first; when the search is over, up to `width`.
  const std::vector<Beam>& hypotheses() const { return finished_; }

 private:
  bool stops(std::int32_t id) const;
  void add_hypothesis(Beam beam);
  bool over() const;

  BeamSearchParams params_;
  std::vector<std::int32_t> stop_ids_;
  std::int64_t new_tokens_max_;
  std::int64_t length_ = 0;  // of the live beams
  bool improvable_ = true;   // transformers' "early stop heuristic" has not spoken yet
  std::vector<Beam> live_;
  std::vector<Beam> finished_;
};

}  // namespace rl
