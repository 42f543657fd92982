// Passes of a pipeline, several in flight, against passes of one rank. Stages are threads.
#include "rl/worker/streamed_passes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rl/model/layer_listener.h"
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
using testing::TeamRank;

// The third has no rows: others have some left.
const std::vector<MicroBatch> kStreamed{{0, 1}, {1, 3}, {3, 3}, {3, 4}, {4, 5}, {5, 8}};

Status stream(const TeamRank& mine, int turn, const PassLoss& loss, Metrics& metrics) {
  const PassInput input{.pack = packed_rows, .wanted = {.logprobs = LogprobOptions()}};
  return StreamedPasses(mine.model, {}, turn).learn(kStreamed, input, loss, metrics);
}

TEST(StreamedPasses, GradientsHaveTheBitsOfPassesOneAfterTheOther) {
  for (const bool tied : {false, true}) {
    const ModelConfig config = team_config(tied);
    const auto alone = learned_alone(config, kStreamed, likelihood_loss());
    for (const int stages : {2, 3}) {
      for (int turn = 0; turn < stages; ++turn) {
        SCOPED_TRACE(std::to_string(stages) + " stages, rows of " + std::to_string(turn) +
                     (tied ? ", tied" : ""));
        std::vector<Metrics> metrics(static_cast<std::size_t>(stages));
        expect_all_ok(on_team(
            {.stages = stages},
            [&](const TeamRank& mine) {
              const Status learned = stream(mine, turn, likelihood_loss(),
                                            metrics[static_cast<std::size_t>(mine.team.rank())]);
              if (learned.ok()) expect_part_of(mine, alone.gradient);
              return learned;
            },
            config));
        for (int rank = 0; rank < stages; ++rank) {
          const Metrics& own = metrics[static_cast<std::size_t>(rank)];
          EXPECT_EQ(own, rank == turn ? alone.metrics : Metrics()) << "of rank " << rank;
        }
      }
    }
  }
}

TEST(StreamedPasses, StagesOfSeveralChunksHaveTheSameBits) {
  for (const bool tied : {false, true}) {
    ModelConfig config = team_config(tied);
    config.layers = 7;
    const auto alone = learned_alone(config, kStreamed, likelihood_loss(/*unlearned=*/5));
    for (const auto& [stages, chunks] : {std::pair{2, 2}, {2, 3}, {3, 2}}) {
      for (int turn = 0; turn < stages; ++turn) {
        SCOPED_TRACE(std::to_string(stages) + " stages of " + std::to_string(chunks) +
                     " chunks, rows of " + std::to_string(turn) + (tied ? ", tied" : ""));
        expect_all_ok(on_team(
            {.stages = stages, .chunks = chunks},
            [&](const TeamRank& mine) {
              Metrics metrics;
              const Status learned = stream(mine, turn, likelihood_loss(/*unlearned=*/5), metrics);
              if (learned.ok()) expect_part_of(mine, alone.gradient);
              return learned;
            },
            config));
      }
    }
  }
}

TEST(StreamedPasses, LossesComeInTheOrderOfPassesWhereTheRowsAre) {
  for (const int turn : {0, 2}) {
    std::vector<MicroBatch> seen;
    expect_all_ok(on_team({.stages = 3}, [&](const TeamRank& mine) {
      Metrics metrics;
      return stream(
          mine, turn,
          [&](const Outputs& outputs, const MicroBatch& rows, const PackedBatch& packed,
              Metrics& more) {
            EXPECT_EQ(mine.team.rank(), turn);
            EXPECT_EQ(outputs.logprobs.logprobs_N.numel(), std::ssize(packed.targets));
            seen.push_back(rows);
            return likelihood_loss()(outputs, rows, packed, more);
          },
          metrics);
    }));
    EXPECT_EQ(seen, (std::vector<MicroBatch>{{0, 1}, {1, 3}, {3, 4}, {4, 5}, {5, 8}}));
  }
}

// Nothing is learned from the passes of rows from 3 on.
TEST(StreamedPasses, PassesWithoutALossLeaveTheGradientsAsTheyAre) {
  for (const bool tied : {false, true}) {
    const ModelConfig config = team_config(tied);
    const auto alone = learned_alone(config, kStreamed, likelihood_loss(/*unlearned=*/3));
    expect_all_ok(on_team(
        {.stages = 3},
        [&](const TeamRank& mine) {
          Metrics metrics;
          const Status learned = stream(mine, 1, likelihood_loss(/*unlearned=*/3), metrics);
          if (learned.ok()) expect_part_of(mine, alone.gradient);
          return learned;
        },
        config));
  }
}

// Counts the passes that have begun and have not ended.
class PassesInFlight final : public LayerListener {
 public:
  explicit PassesInFlight(const TeamRank& rank) : model_(rank.model) { model_.tell(*this); }
  ~PassesInFlight() override { model_.stop_telling(*this); }
  PassesInFlight(const PassesInFlight&) = delete;
  PassesInFlight& operator=(const PassesInFlight&) = delete;

  void before_forward(std::int64_t layer) override {
    first_ = passes == 0 && now_ == 0 ? layer : first_;
    if (layer != first_) return;
    ++passes;
    most = std::max(most, ++now_);
  }
  void after_pass() override { --now_; }

  std::int64_t passes = 0;
  std::int64_t most = 0;

 private:
  Transformer& model_;
  std::int64_t first_ = 0;  // layer of this stage's passes
  std::int64_t now_ = 0;
};

TEST(StreamedPasses, AStageHasAsManyPassesInFlightAsThereAreStagesFromItOn) {
  expect_all_ok(on_team({.stages = 3}, [](const TeamRank& mine) {
    PassesInFlight watch(mine);
    Metrics metrics;
    const Status learned = stream(mine, 0, likelihood_loss(), metrics);
    EXPECT_EQ(watch.passes, 5) << "those with rows";
    EXPECT_EQ(watch.most, 3 - mine.team.rank());
    return learned;
  }));
}

// On the stage that computes losses next to its passes, and on the last one, which does so in them.
TEST(StreamedPasses, ALossThatFailsIsItsRanksErrorAndEndsThePassesOfAll) {
  for (const int turn : {0, 2}) {
    const std::vector<Status> ended = on_team({.stages = 3}, [&](const TeamRank& mine) {
      Metrics metrics;
      return stream(
          mine, turn,
          [](const Outputs& outputs, const MicroBatch& rows, const PackedBatch& packed,
             Metrics& more) -> Result<at::Tensor> {
            if (rows.first >= 3) return runtime::invalid_argument("no such loss");
            return likelihood_loss()(outputs, rows, packed, more);
          },
          metrics);
    });
    for (int rank = 0; rank < 3; ++rank) {
      const Status& status = ended[static_cast<std::size_t>(rank)];
      if (rank == turn)
        EXPECT_EQ(status.message(), "no such loss");
      else
        EXPECT_EQ(status.code(), ErrorCode::kUnavailable) << status.to_string();
    }
  }
}

// Fails when its first pass ends.
class FailingPass final : public LayerListener {
 public:
  explicit FailingPass(const TeamRank& rank) : model_(rank.model) { model_.tell(*this); }
  ~FailingPass() override { model_.stop_telling(*this); }
  FailingPass(const FailingPass&) = delete;
  FailingPass& operator=(const FailingPass&) = delete;

  void after_pass() override { throw_unless_ok(runtime::task_failed("a stage without memory")); }

 private:
  Transformer& model_;
};

TEST(StreamedPasses, AStageThatFailsEndsThePassesOfTheOthers) {
  for (int failing = 0; failing < 3; ++failing) {
    SCOPED_TRACE("stage " + std::to_string(failing));
    const std::vector<Status> ended = on_team({.stages = 3}, [&](const TeamRank& mine) {
      Metrics metrics;
      if (mine.team.rank() != failing) return stream(mine, 1, likelihood_loss(), metrics);
      const FailingPass fails(mine);
      return stream(mine, 1, likelihood_loss(), metrics);
    });
    for (int rank = 0; rank < 3; ++rank) {
      const Status& status = ended[static_cast<std::size_t>(rank)];
      if (rank == failing) {
        EXPECT_EQ(status.code(), ErrorCode::kTaskFailed) << status.to_string();
        EXPECT_NE(status.message().find("a stage without memory"), std::string::npos);
      } else {
        EXPECT_EQ(status.code(), ErrorCode::kUnavailable) << status.to_string();
      }
    }
  }
}

}  // namespace
}  // namespace rl
