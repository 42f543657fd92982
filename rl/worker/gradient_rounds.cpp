#include "rl/worker/gradient_rounds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rl {

using runtime::Status;

Status learn_in_rounds(Learner& learner, std::span<const MicroBatch> micro_batches,
                       std::span<const GradientRound> rounds,
                       const std::function<Status(std::span<const MicroBatch>)>& learn) {
  if (rounds.empty()) return learn(micro_batches);
  std::size_t planned = 0;
  for (const GradientRound& round : rounds)
    planned += static_cast<std::size_t>(std::max<std::int64_t>(round.passes, 0));
  if (planned != micro_batches.size())
    return runtime::invalid_argument("update: rounds of other micro-batches than there are");
  std::size_t next = 0;
  for (const GradientRound& round : rounds) {
    const auto passes = static_cast<std::size_t>(std::max<std::int64_t>(round.passes, 0));
    learner.begin_leaf(round.leaf);
    const Status learned = learn(micro_batches.subspan(next, passes));
    if (!learned.ok()) return learned;
    next += passes;
    const Status added = learner.add_round(round.adds, &round == &rounds.back());
    if (!added.ok()) return added;
  }
  return {};
}

}  // namespace rl
