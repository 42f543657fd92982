#include "rl/worker/adapter_leaves.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/comm/thread_links.h"

namespace rl {
namespace {

// By position in a team, whether the rank adds to an adapter in that turn.
std::vector<bool> adds(const PassSharing& sharing, int turn) {
  const auto size = static_cast<int>(sharing.team()), of_stage = static_cast<int>(sharing.ranks);
  auto links = make_thread_links(size);
  std::vector<bool> list;
  for (int rank = 0; rank < size; ++rank) {
    Communicator team(std::move(links[static_cast<std::size_t>(rank)]));
    Communicator stage(
        std::move(make_thread_links(of_stage)[static_cast<std::size_t>(rank % of_stage)]));
    const PassTeam stage_team(stage, sharing.cut);
    const PassTeam passes =
        sharing.stages == 1
            ? PassTeam(team, sharing.cut)
            : PassTeam(team, static_cast<int>(sharing.stages), static_cast<int>(sharing.chunks),
                       sharing.ranks > 1 ? &stage_team : nullptr);
    list.push_back(adds_to_adapter(passes, turn));
  }
  return list;
}

TEST(AdapterLeaves, OneRankOfEachStageAddsButWhereExpertsAreDealt) {
  using List = std::vector<bool>;
  for (const PassCut cut : {PassCut::kOutputs, PassCut::kRows}) {
    EXPECT_EQ(adds({.ranks = 3, .cut = cut}, 1), (List{false, true, false}));
    EXPECT_EQ(adds({.ranks = 2, .cut = cut, .stages = 2}, 3), (List{false, true, false, true}));
  }
  EXPECT_EQ(adds({.stages = 3}, 1), (List{true, true, true}));
  EXPECT_EQ(adds({.ranks = 2, .cut = PassCut::kRowsAndExperts}, 0), (List{true, true}));
}

}  // namespace
}  // namespace rl
