#include "rl/checkpoint/checkpoint_saver.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;

class CheckpointSaverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("starling-saver-" + std::to_string(::getpid()));
    fs::remove_all(root_);
    saver_ = CheckpointSaver({.folder = root_,
                              .kept = 1,
                              .best = {.goal = {.metric = "val/loss", .larger_is_better = false}}});
  }
  void TearDown() override { fs::remove_all(root_); }

  static Result<CheckpointSaver::WriteFiles> copy() {
    return CheckpointSaver::WriteFiles(
        [](CheckpointWriter& writer) -> Result<std::vector<fs::path>> {
          if (const runtime::Status written = writer.write_json("state.json", {{"a", 1}});
              !written.ok())
            return written;
          return std::vector<fs::path>{"state.json"};
        });
  }
  // Says that it wrote what it did not.
  static Result<CheckpointSaver::WriteFiles> copy_in_vain() {
    return CheckpointSaver::WriteFiles([](CheckpointWriter&) -> Result<std::vector<fs::path>> {
      return std::vector<fs::path>{"state.json"};
    });
  }

  fs::path root_;
  CheckpointSaver saver_{CheckpointSaverOptions{}};
};

TEST_F(CheckpointSaverTest, WritesOneAfterTheOther) {
  for (const std::int64_t step : {1, 2, 3}) {
    saver_.observe(/*losing=*/false);
    saver_.save(step, /*best=*/false, /*wait=*/false, copy);
  }
  saver_.end();
  EXPECT_TRUE(saver_.failure().ok()) << saver_.failure().to_string();
  EXPECT_EQ(saver_.latest(), root_ / "global_step_3");
  EXPECT_TRUE(verify_checkpoint(root_ / "global_step_3").ok());
  EXPECT_FALSE(fs::exists(root_ / "global_step_1"));
  EXPECT_TRUE(fs::exists(root_ / "global_step_2")) << "no step has followed the third";
  Metrics metrics;
  saver_.tell(metrics);
  EXPECT_EQ(metrics.count("timing_s/save_checkpoint"), 1u);
  metrics.clear();
  saver_.tell(metrics);
  EXPECT_TRUE(metrics.empty());
}

// What there is to go back to.
TEST_F(CheckpointSaverTest, OlderOnesStayUntilAStepHasTakenAnUpdate) {
  const auto there = [&](std::int64_t step) { return fs::exists(checkpoint_path(root_, step)); };
  saver_.observe(/*losing=*/false);
  saver_.save(1, /*best=*/false, /*wait=*/true, copy);
  saver_.observe(false);
  saver_.save(2, false, /*wait=*/true, copy);
  EXPECT_TRUE(there(1) && there(2));
  saver_.observe(/*losing=*/true);
  saver_.end();
  EXPECT_TRUE(there(1) && there(2));
  saver_.save(3, false, /*wait=*/true, copy);
  saver_.end();
  EXPECT_TRUE(there(1) && there(2) && there(3));
  saver_.observe(false);
  saver_.end();
  EXPECT_TRUE(!there(1) && !there(2) && there(3));
}

// A step that ruins the weights takes an update, too; the one after it ends in an error, or there
// is none.
TEST_F(CheckpointSaverTest, TheOneBeforeTheLastStaysWhereNoStepFollows) {
  const auto there = [&](std::int64_t step) { return fs::exists(checkpoint_path(root_, step)); };
  for (const std::int64_t step : {1, 2, 3}) {
    saver_.observe(/*losing=*/false);
    saver_.save(step, /*best=*/false, /*wait=*/true, copy);
  }
  saver_.end();
  EXPECT_TRUE(!there(1) && there(2) && there(3));
}

TEST_F(CheckpointSaverTest, AFailureIsKeptUntilAnotherOneIsWritten) {
  saver_.save(1, false, /*wait=*/true, copy_in_vain);
  EXPECT_NE(saver_.failure().message().find("checkpoint of step 1: "), std::string::npos)
      << saver_.failure().to_string();
  saver_.save(2, false, /*wait=*/true, [] {
    return Result<CheckpointSaver::WriteFiles>(runtime::internal_error("no copy"));
  });
  EXPECT_EQ(saver_.failure().message(), "checkpoint of step 2: no copy");
  EXPECT_FALSE(saver_.latest().has_value());
  saver_.save(3, false, /*wait=*/true, copy);
  EXPECT_TRUE(saver_.failure().ok());
  EXPECT_EQ(saver_.save_now(4, copy_in_vain).ok(), false);
  EXPECT_TRUE(saver_.failure().ok());
  EXPECT_EQ(saver_.latest(), root_ / "global_step_3");
}

TEST_F(CheckpointSaverTest, TheBestStaysUnlessItCouldNotBeWritten) {
  const auto observe = [&](std::int64_t step, double loss, const CheckpointSaver::CopyState& how) {
    saver_.observe(/*losing=*/false);
    const bool best = saver_.is_best(step, {{"val/loss", loss}});
    saver_.save(step, best, /*wait=*/false, how);
    return best;
  };
  EXPECT_TRUE(observe(1, 2.0, copy));
  EXPECT_FALSE(observe(2, 3.0, copy));
  EXPECT_TRUE(observe(3, 1.0, copy_in_vain));
  EXPECT_TRUE(observe(4, 1.5, copy)) << "better than the first, and the third was not kept";
  EXPECT_FALSE(observe(5, 1.75, copy));
  saver_.end();
  EXPECT_EQ(best_checkpoint_step(root_), 4);
  EXPECT_TRUE(fs::exists(root_ / "global_step_4"));
  EXPECT_TRUE(fs::exists(root_ / "global_step_5"));
  EXPECT_FALSE(fs::exists(root_ / "global_step_1"));
  EXPECT_FALSE(saver_.is_best(6, {}));
}

// Killed between a checkpoint and its mark: the file still names the best of before.
TEST_F(CheckpointSaverTest, TheBestIsMarkedAgainWhereARunGoesOn) {
  for (const std::int64_t step : {1, 2})
    saver_.save(step, saver_.is_best(step, {{"val/loss", 3.0 - static_cast<double>(step)}}),
                /*wait=*/true, copy);
  const nlohmann::ordered_json state = {{"best", saver_.best_state()}};
  EXPECT_EQ(state["best"]["step"], 2);
  ASSERT_TRUE(mark_best_checkpoint(root_, 1).ok());
  saver_.resume(root_ / "global_step_2", state);
  EXPECT_EQ(best_checkpoint_step(root_), 2);
  EXPECT_FALSE(saver_.is_best(3, {{"val/loss", 1.5}}));
  EXPECT_TRUE(saver_.is_best(3, {{"val/loss", 0.5}}));
  // Nothing of a checkpoint that is gone.
  saver_.resume(
      root_ / "global_step_2",
      {{"best",
        {{"metric", "val/loss"}, {"mode", "min"}, {"value", 0.25}, {"since", 0}, {"step", 9}}}});
  EXPECT_EQ(best_checkpoint_step(root_), 2);
}

}  // namespace
}  // namespace rl
