#include "rl/worker/gradient_rounds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rl/worker/adapter_leaves.h"
#include "rl/worker/joint_pass.h"

namespace rl {

using runtime::Status;

namespace {

// Those ranks whose turn it is: one of each team.
std::vector<std::uint8_t> adds_in_turn(std::span<const std::uint8_t> adds, int turn, int turns) {
  const std::size_t teams = adds.size() / static_cast<std::size_t>(turns);
  std::vector<std::uint8_t> in_turn(adds.size(), 0);
  for (std::size_t rank = 0; rank < adds.size(); ++rank)
    if (rank / teams == static_cast<std::size_t>(turn)) in_turn[rank] = adds[rank];
  return in_turn;
}

// The passes of a turn, in the last of which gradients are summed.
Status learn_to_sum(Learner& learner, std::span<const MicroBatch> passes, int turn,
                    std::span<const std::uint8_t> adds, bool last, const LearnTurn& learn) {
  // Stages with several passes in flight go back through the last one at different times.
  const bool streams = learner.model().stream() != nullptr && passes.size() > 1;
  if (!streams && !passes.empty()) {
    learner.expect_last_pass(adds, last, passes.size() - 1);
    return learn(passes, turn);
  }
  if (streams) {
    const Status learned = learn(passes, turn);
    if (!learned.ok()) return learned;
  }
  learner.expect_last_pass(adds, last);
  return learner.model().idle_pass(/*with_backward=*/true);
}

// The passes of a leaf, of which the last one may have to know that it is.
Status learn_leaf(Learner& learner, std::span<const MicroBatch> passes,
                  std::span<const std::uint8_t> adds, bool last_round, const LearnTurn& learn) {
  const PassTeam* team = learner.model().team();
  const int turns = team == nullptr ? 1 : team->size();
  AdapterLeaves adapter(learner.model());
  for (int turn = 0; turn < turns; ++turn) {
    if (!learner.sums_in_passes()) {
      if (const Status learned = learn(passes, turn); !learned.ok()) return learned;
      if (const Status ended = adapter.end_turn(turn); !ended.ok()) return ended;
      continue;
    }
    const Status learned = learn_to_sum(learner, passes, turn, adds_in_turn(adds, turn, turns),
                                        last_round && turn + 1 == turns, learn);
    if (!learned.ok()) return learned;
  }
  return {};
}

// The same with the rows of all ranks in each pass: the first rank of a team adds for it.
Status learn_together(Learner& learner, std::span<const MicroBatch> passes,
                      std::span<const std::uint8_t> adds, const LearnTurn& learn) {
  if (!learner.sums_in_passes()) return learn(passes, kTogether);
  return learn_to_sum(learner, passes, kTogether,
                      adds_in_turn(adds, /*turn=*/0, learner.model().team()->size()),
                      /*last=*/true, learn);
}

}  // namespace

Status learn_in_rounds(Learner& learner, std::span<const MicroBatch> micro_batches,
                       std::span<const GradientRound> rounds, const OutputOptions& wanted,
                       const LearnTurn& learn) {
  if (rounds.empty()) {
    const std::vector<std::uint8_t> all(static_cast<std::size_t>(learner.ranks().size()), 1);
    return JointPass::is_possible(learner.model(), wanted)
               ? learn_together(learner, micro_batches, all, learn)
               : learn_leaf(learner, micro_batches, all, /*last_round=*/true, learn);
  }
  std::size_t planned = 0;
  for (const GradientRound& round : rounds)
    planned += static_cast<std::size_t>(std::max<std::int64_t>(round.passes, 0));
  if (planned != micro_batches.size())
    return runtime::invalid_argument("update: rounds of other micro-batches than there are");
  std::size_t next = 0;
  for (const GradientRound& round : rounds) {
    const auto passes = static_cast<std::size_t>(std::max<std::int64_t>(round.passes, 0));
    learner.begin_leaf(round.leaf);
    const bool last = &round == &rounds.back();
    const Status learned =
        learn_leaf(learner, micro_batches.subspan(next, passes), round.adds, last, learn);
    if (!learned.ok()) return learned;
    next += passes;
    const Status added = learner.add_round(round.adds, last);
    if (!added.ok()) return added;
  }
  return {};
}

}  // namespace rl
