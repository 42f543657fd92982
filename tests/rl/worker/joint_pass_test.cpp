// Passes with the rows of all ranks of a team. Ranks are threads.
#include "rl/worker/joint_pass.h"

#include <cstdint>
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
using testing::Learned;
using testing::learned_alone;
using testing::likelihood_loss;
using testing::on_team;
using testing::packed_rows;
using testing::team_config;
using testing::team_model;
using testing::TeamRank;

const PassInput kJointRows{.pack = packed_rows, .wanted = {.logprobs = LogprobOptions()}};

// Passes of those rows, by pass and rank.
Status learn_joint(const TeamRank& mine, const std::vector<std::vector<MicroBatch>>& passes,
                   const PassLoss& loss, Metrics& metrics) {
  std::vector<MicroBatch> own;
  for (const std::vector<MicroBatch>& of_pass : passes)
    own.push_back(of_pass[static_cast<std::size_t>(mine.team.rank())]);
  return Passes(mine.model, {}).learn(own, kJointRows, loss, metrics, kTogether);
}

// The gradient has the bits of one rank's passes with these rows.
void expect_joint(const PassSharing& sharing, const std::vector<std::vector<MicroBatch>>& passes,
                  const std::vector<MicroBatch>& alone, const PassLoss& loss,
                  const ModelConfig& config = team_config()) {
  const Learned expected = learned_alone(config, alone, loss);
  std::vector<Metrics> metrics(static_cast<std::size_t>(sharing.ranks));
  const auto learn = [&](const TeamRank& mine) {
    Metrics& own = metrics[static_cast<std::size_t>(mine.team.rank())];
    const Status learned = learn_joint(mine, passes, loss, own);
    if (learned.ok()) expect_part_of(mine, expected.gradient);
    return learned;
  };
  expect_all_ok(on_team(sharing, learn, config));
  double sum = 0.0;
  for (Metrics& of_rank : metrics) sum += of_rank["loss"];
  EXPECT_NEAR(sum, expected.metrics.at("loss"), 1e-4);
}

TEST(JointPass, HasTheBitsOfOneRankWithAllRows) {
  for (const PassCut cut : {PassCut::kOutputs, PassCut::kRows}) {
    expect_joint({.ranks = 2, .cut = cut}, {{{0, 2}, {2, 3}}}, {{0, 3}}, likelihood_loss());
    expect_joint({.ranks = 2, .cut = cut}, {{{0, 1}, {1, 3}}, {{3, 4}, {4, 5}}}, {{0, 3}, {3, 5}},
                 likelihood_loss());
  }
  ModelConfig four_heads = team_config();
  four_heads.kv_heads = 4;
  for (const PassCut cut : {PassCut::kOutputs, PassCut::kRows})
    expect_joint({.ranks = 3, .cut = cut}, {{{0, 1}, {1, 3}, {3, 4}}}, {{0, 4}}, likelihood_loss(),
                 four_heads);
}

TEST(JointPass, ARankMayHaveNoRows) {
  expect_joint({.ranks = 2}, {{{0, 2}, {2, 2}}, {{2, 2}, {2, 3}}}, {{0, 2}, {2, 3}},
               likelihood_loss());
}

// Its first rank learns nothing from its rows, the other does.
TEST(JointPass, ARankMayLearnNothing) {
  const MicroBatch learned{0, 1}, ignored{1, 3};
  const auto loss = likelihood_loss(/*unlearned=*/1);
  const PackedBatch all = packed_rows({0, 3});
  const auto model = team_model(team_config());
  model->enable_gradients();
  const auto outputs = model->outputs(all, kJointRows.wanted);
  ASSERT_TRUE(outputs.ok());
  const std::int64_t targets = std::ssize(packed_rows(learned).targets);
  (-outputs->logprobs.logprobs_N.narrow(0, 0, targets).sum()).backward();
  const at::Tensor expected = model->gradients().arena();
  expect_all_ok(on_team({.ranks = 2}, [&](const TeamRank& mine) {
    Metrics metrics;
    const Status status = learn_joint(mine, {{learned, ignored}}, loss, metrics);
    if (status.ok()) expect_part_of(mine, expected);
    return status;
  }));
}

TEST(JointPass, WhereNobodyHasRowsOrLearnsItIsIdle) {
  for (const MicroBatch& rows : {MicroBatch{1, 1}, MicroBatch{0, 2}}) {
    expect_all_ok(on_team({.ranks = 2}, [&](const TeamRank& mine) {
      Metrics metrics;
      const Status status =
          learn_joint(mine, {{rows, rows}}, likelihood_loss(/*unlearned=*/0), metrics);
      EXPECT_EQ(mine.model.gradients().arena().abs().max().item<float>(), 0.0F);
      return status;
    }));
  }
}

TEST(JointPass, EachRankSeesItsPart) {
  expect_all_ok(on_team({.ranks = 2}, [](const TeamRank& mine) {
    JointPass joint(mine.model);
    const MicroBatch rows = mine.team.rank() == 0 ? MicroBatch{0, 2} : MicroBatch{2, 3};
    const auto packed = joint.packed(rows, kJointRows);
    if (!packed.ok()) return packed.status();
    PackedBatch all = packed_rows({0, 3}), got = *packed, brought = joint.own();
    EXPECT_EQ(got.fields(), all.fields());
    PackedBatch own = packed_rows(rows);
    EXPECT_EQ(brought.fields(), own.fields());
    const auto outputs = mine.model.outputs(*packed, kJointRows.wanted);
    if (!outputs.ok()) return outputs.status();
    const std::int64_t targets = std::ssize(own.targets),
                       others = std::ssize(all.targets) - targets;
    return joint.backward(*outputs, [&](const Outputs& part) -> Result<at::Tensor> {
      EXPECT_TRUE(part.logprobs.logprobs_N.equal(
          outputs->logprobs.logprobs_N.narrow(0, mine.team.rank() == 0 ? 0 : others, targets)));
      return part.logprobs.logprobs_N.sum();
    });
  }));
}

TEST(JointPass, ALossThatFailsIsItsRanksErrorAndEndsThePassOfTheOthers) {
  const std::vector<Status> ended = on_team({.ranks = 2}, [](const TeamRank& mine) {
    Metrics metrics;
    const auto loss = [&](const Outputs& outputs, const MicroBatch&, const PackedBatch&,
                          Metrics&) -> Result<at::Tensor> {
      if (mine.team.rank() == 1) return runtime::invalid_argument("no such loss");
      return outputs.logprobs.logprobs_N.sum();
    };
    return learn_joint(mine, {{{0, 2}, {2, 3}}}, loss, metrics);
  });
  EXPECT_EQ(ended[1].message(), "no such loss");
  EXPECT_EQ(ended[0].code(), ErrorCode::kUnavailable) << ended[0].to_string();
}

TEST(JointPass, IsForTeamsWhoseOutputsAreRows) {
  const OutputOptions logprobs{.logprobs = LogprobOptions()};
  EXPECT_FALSE(JointPass::is_possible(*team_model(team_config()), logprobs));
  const auto possible = [](const PassSharing& sharing, const OutputOptions& wanted) {
    bool is = false;
    expect_all_ok(on_team(sharing, [&](const TeamRank& mine) {
      if (mine.team.rank() == 0) is = JointPass::is_possible(mine.model, wanted);
      return Status();
    }));
    return is;
  };
  EXPECT_TRUE(possible({.ranks = 2}, logprobs));
  EXPECT_TRUE(possible({.ranks = 2, .cut = PassCut::kRows}, logprobs));
  EXPECT_FALSE(possible({.stages = 2}, logprobs));
  EXPECT_FALSE(possible({.ranks = 2}, {.states = true}));
  expect_all_ok(on_team({.ranks = 2}, [&](const TeamRank& mine) {
    auto adapter = LoraAdapter::create(mine.model.config(), {.rank = 2}, 7);
    if (!adapter.ok()) return adapter.status();
    if (const Status added = mine.model.add_adapter("trained", std::move(*adapter)); !added.ok())
      return added;
    const Status used = mine.model.use_adapter("trained");
    EXPECT_FALSE(JointPass::is_possible(mine.model, logprobs));
    return used;
  }));
}

}  // namespace
}  // namespace rl
