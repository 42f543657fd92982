// AdvantageEstimator: how rewards become advantages, by verl's names. Each is one class in one file
// (estimator_NAME.cpp) and one row of the factory in advantage_estimator.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

class ResponseEstimator;
class TokenEstimator;

/// What an estimator needs of a run, and gives to it. All that other parts ask of an estimator
/// besides its formula is asked here.
struct EstimatorTraits {
  std::string name = {};
  /// Advantages come from a critic's values.
  bool needs_critic = false;
  /// ... from the score of the greedy response to the same prompt.
  bool needs_greedy_response = false;
  /// ... from the policy's probabilities, see Probabilities in response_scores.h.
  bool needs_probabilities = false;
  /// ... from the numbers of the reward that `algorithm.gdpo_reward_keys` names.
  bool needs_components = false;
  /// Rows of tokens have a column for each place of the response, and a tool's tokens theirs. Else
  /// they have one for each learned token.
  bool compares_places = false;
  /// Advantages of tokens are whitened over the step, rather than used as they are.
  bool is_whitened = false;
  /// The fewest responses to a prompt that give it something to compare with.
  std::int64_t group_size_min = 1;
  /// A response of a prompt that has a single one has nothing to be compared with, and its score is
  /// its advantage.
  bool does_with_one = false;
  /// The fewest responses to a prompt that may be left of a group. One alone would have an
  /// advantage of another scale than the others', unless a baseline is all that is taken off.
  std::int64_t remainder_min = 1;
  /// Each step on prompts of the data is followed by one on those of them that are worth most. That
  /// depends on which responses are right, which `algorithm.codapo_accuracy_key` names.
  bool revisits_prompts = false;

  /// Steps on the prompts of one batch of the data.
  std::int64_t steps_per_batch() const { return revisits_prompts ? 2 : 1; }
};

/// verl's `algorithm.adv_estimator`. Immutable, and shared by all threads. Either a
/// ResponseEstimator or a TokenEstimator.
class AdvantageEstimator {
 public:
  AdvantageEstimator(const AdvantageEstimator&) = delete;
  AdvantageEstimator& operator=(const AdvantageEstimator&) = delete;
  virtual ~AdvantageEstimator() = default;

  const EstimatorTraits& traits() const { return traits_; }
  const std::string& name() const { return traits_.name; }

  /// nullptr: advantages differ within a response, and are worked out where its tokens are.
  virtual const ResponseEstimator* of_responses() const { return nullptr; }
  /// nullptr: all tokens of a response have the same advantage.
  virtual const TokenEstimator* of_tokens() const { return nullptr; }

 protected:
  explicit AdvantageEstimator(EstimatorTraits traits) : traits_(std::move(traits)) {}

 private:
  EstimatorTraits traits_;
};

/// One of the factory's, or one that register_advantage_estimator() has added. It is never deleted.
/// kInvalidArgument names them all.
runtime::Result<const AdvantageEstimator*> parse_advantage_estimator(std::string_view name);

/// The same for a name that there is; another one is a bug of the caller.
const AdvantageEstimator& advantage_estimator(std::string_view name);

/// The factory's names in alphabetical order, as `algorithm.adv_estimator` lists them.
std::vector<std::string> advantage_estimator_names();

}  // namespace rl
