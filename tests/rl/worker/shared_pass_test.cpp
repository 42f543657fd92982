// Messages between the ranks of a shared pass. Ranks are threads.
#include "rl/worker/shared_pass.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rl/model/lora.h"
#include "tests/rl/worker/team_ranks.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;
using testing::expect_all_ok;
using testing::expect_part_of;
using testing::learned_alone;
using testing::likelihood_loss;
using testing::on_team;
using testing::packed_rows;
using testing::team_config;
using testing::team_model;
using testing::TeamRank;

const OutputOptions kOfTargets{.logprobs = LogprobOptions()};

bool is_same(PackedBatch a, PackedBatch b) { return a.fields() == b.fields(); }

// One pass of those rows, with this loss where they are.
Status learn_shared(const TeamRank& mine, int turn, const MicroBatch& rows,
                    const LossOfOutputs& loss) {
  const SharedPass shared(mine.model, turn);
  const auto packed = shared.packed(rows, {.pack = packed_rows, .wanted = kOfTargets});
  if (!packed.ok()) return packed.status();
  const auto outputs = mine.model.outputs(*packed, kOfTargets);
  if (!outputs.ok()) return outputs.status();
  return shared.backward(*outputs, loss);
}

// That of likelihood_loss().
LossOfOutputs loss_of(const MicroBatch& rows, Metrics& metrics) {
  return [&metrics, rows](const Outputs& outputs) {
    return likelihood_loss()(outputs, rows, {}, metrics);
  };
}

TEST(SharedPass, WithoutATeamAllIsThisRanks) {
  const auto model = team_model(team_config());
  model->enable_gradients();
  const SharedPass shared(*model, 0);
  EXPECT_TRUE(shared.is_own());
  const MicroBatch rows{0, 2};
  const PassInput input{.pack = packed_rows, .wanted = kOfTargets};
  const auto packed = shared.packed(rows, input);
  ASSERT_TRUE(packed.ok());
  EXPECT_TRUE(is_same(*packed, packed_rows(rows)));
  EXPECT_TRUE(shared.packed({2, 2}, input)->ids.empty());
  const auto outputs = model->outputs(*packed, kOfTargets);
  ASSERT_TRUE(outputs.ok());
  Metrics metrics;
  ASSERT_TRUE(shared.backward(*outputs, loss_of(rows, metrics)).ok());
  EXPECT_TRUE(model->gradients().arena().equal(
      learned_alone(team_config(), {rows}, likelihood_loss()).gradient));
  const Status failed = shared.backward(*outputs, [](const Outputs&) -> Result<at::Tensor> {
    return runtime::invalid_argument("no such loss");
  });
  EXPECT_EQ(failed.message(), "no such loss");
}

// Each in turn; only the one whose rows they are packs any.
TEST(SharedPass, AllRanksGetTheRowsAndTheDropoutOfTheOneWhoseTurnItIs) {
  expect_all_ok(on_team({.ranks = 2}, [](const TeamRank& mine) {
    DropoutPasses& drops = mine.model.dropout_passes();
    drops.seed(static_cast<std::uint64_t>(mine.team.rank()) + 40);
    for (int turn = 0; turn < 2; ++turn) {
      const SharedPass shared(mine.model, turn);
      EXPECT_EQ(shared.is_own(), mine.team.rank() == turn);
      int packs = 0;
      const PassInput input{.pack =
                                [&](const MicroBatch& rows) {
                                  ++packs;
                                  return packed_rows(rows);
                                },
                            .wanted = kOfTargets};
      const auto packed = shared.packed({turn, turn + 2}, input);
      if (!packed.ok()) return packed.status();
      EXPECT_TRUE(is_same(*packed, packed_rows({turn, turn + 2})));
      EXPECT_EQ(packs, shared.is_own() ? 1 : 0);
      EXPECT_EQ(drops.take().seed, static_cast<std::uint64_t>(turn) + 40);
      EXPECT_EQ(drops.next().seed, static_cast<std::uint64_t>(mine.team.rank()) + 40);
    }
    return Status();
  }));
}

// Of rank 0 there are no rows, of rank 1 there are, and none of their tokens is a target.
TEST(SharedPass, WhereNothingIsToBeComputedAllRanksGetNothing) {
  expect_all_ok(on_team({.ranks = 2}, [](const TeamRank& mine) {
    const PassInput input{.pack =
                              [](const MicroBatch&) {
                                PackedBatch packed;
                                packed.append(std::vector<std::int32_t>{4, 5}, 2);
                                return packed;
                              },
                          .wanted = kOfTargets};
    for (int turn = 0; turn < 2; ++turn) {
      const auto packed = SharedPass(mine.model, turn).packed({0, mine.team.rank()}, input);
      if (!packed.ok()) return packed.status();
      EXPECT_TRUE(packed->ids.empty());
    }
    return Status();
  }));
}

TEST(SharedPass, GradientsOfAllRanksAreThoseOfOneAndTheLossIsComputedOnce) {
  const std::vector<MicroBatch> passes{{0, 2}, {2, 3}};  // of rank 0, of rank 1
  const auto alone = learned_alone(team_config(), passes, likelihood_loss());
  for (const PassCut cut : {PassCut::kOutputs, PassCut::kRows}) {
    std::vector<Metrics> metrics(2);
    expect_all_ok(on_team({.ranks = 2, .cut = cut}, [&](const TeamRank& mine) {
      Metrics& own = metrics[static_cast<std::size_t>(mine.team.rank())];
      for (int turn = 0; turn < 2; ++turn) {
        const MicroBatch& rows = passes[static_cast<std::size_t>(turn)];
        const Status learned = learn_shared(mine, turn, rows, loss_of(rows, own));
        if (!learned.ok()) return learned;
      }
      expect_part_of(mine, alone.gradient);
      return Status();
    }));
    EXPECT_DOUBLE_EQ(metrics[0]["loss"] + metrics[1]["loss"], alone.metrics.at("loss"));
    EXPECT_GT(metrics[0]["loss"], 0.0);
    EXPECT_GT(metrics[1]["loss"], 0.0);
  }
}

TEST(SharedPass, AnUndefinedLossTeachesNoRankAnything) {
  expect_all_ok(on_team({.ranks = 2}, [](const TeamRank& mine) {
    const Status learned = learn_shared(
        mine, 1, {0, 2}, [](const Outputs&) -> Result<at::Tensor> { return at::Tensor(); });
    EXPECT_EQ(mine.model.gradients().arena().abs().max().item<float>(), 0.0F);
    return learned;
  }));
}

// Ranks that compute the same layers have an adapter's whole gradient each. The one whose turn it
// is adds it: two would count it twice.
TEST(SharedPass, OneRankAddsToAnAdapter) {
  const MicroBatch rows{0, 2};
  const auto with_adapter = [](Transformer& model) {
    auto adapter = LoraAdapter::create(model.config(), {.rank = 2}, 7);
    ASSERT_TRUE(adapter.ok()) << adapter.status().to_string();
    ASSERT_TRUE(model.add_adapter("trained", std::move(*adapter)).ok());
    ASSERT_TRUE(model.use_adapter("trained").ok());
    model.enable_gradients();
  };
  const auto alone = team_model(team_config());
  with_adapter(*alone);
  const auto outputs = alone->outputs(packed_rows(rows), kOfTargets);
  ASSERT_TRUE(outputs.ok());
  Metrics metrics;
  loss_of(rows, metrics)(*outputs)->backward();
  const at::Tensor expected = alone->gradients().arena();
  ASSERT_GT(expected.abs().max().item<float>(), 0.0F);
  for (const int turn : {0, 1}) {
    expect_all_ok(on_team({.ranks = 2}, [&](const TeamRank& mine) {
      with_adapter(mine.model);
      Metrics own;
      const Status learned = learn_shared(mine, turn, rows, loss_of(rows, own));
      const at::Tensor gradient = mine.model.gradients().arena();
      if (mine.team.rank() == turn)
        EXPECT_TRUE(gradient.equal(expected));
      else
        EXPECT_EQ(gradient.abs().max().item<float>(), 0.0F);
      return learned;
    }));
  }
}

// The others wait for what it has to tell.
TEST(SharedPass, ALossThatFailsIsItsRanksErrorAndEndsThePassOfTheOthers) {
  const std::vector<Status> ended = on_team({.ranks = 2}, [](const TeamRank& mine) {
    return learn_shared(mine, 1, {0, 2}, [](const Outputs&) -> Result<at::Tensor> {
      return runtime::invalid_argument("no such loss");
    });
  });
  EXPECT_EQ(ended[1].message(), "no such loss");
  EXPECT_EQ(ended[0].code(), ErrorCode::kUnavailable) << ended[0].to_string();
  EXPECT_NE(ended[0].message().find("gradients of a loss"), std::string::npos)
      << ended[0].message();
}

TEST(SharedPass, ARankThatIsGoneEndsThePassOfTheOthers) {
  const std::vector<Status> ended = on_team({.ranks = 2}, [](const TeamRank& mine) {
    if (mine.team.rank() == 1) return runtime::task_failed("out of memory");
    return SharedPass(mine.model, 1)
        .packed({0, 2}, {.pack = packed_rows, .wanted = kOfTargets})
        .status();
  });
  EXPECT_EQ(ended[0].code(), ErrorCode::kUnavailable) << ended[0].to_string();
  EXPECT_NE(ended[0].message().find("rows of a pass"), std::string::npos) << ended[0].message();
}

}  // namespace
}  // namespace rl
