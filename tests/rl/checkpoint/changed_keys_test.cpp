#include "rl/checkpoint/changed_keys.h"

#include <gtest/gtest.h>

#include <fstream>

#include "rl/config/stage_keys.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

Config config(std::vector<std::string> overrides) {
  const auto loaded =
      Config::load({.file = {}, .overrides = std::move(overrides), .keys = &sft_keys()});
  EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
  return loaded.ok() ? *loaded : Config();
}

class ChangedKeysTest : public ::testing::Test {
 protected:
  void save(const Config& saved, const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / kSavedConfigFile) << saved.to_yaml();
  }
  std::vector<std::string> changes(const Config& now) const {
    std::vector<std::string> lines;
    for (const ChangedKey& key : changed_keys(checkpoint_, now)) lines.push_back(key.text());
    return lines;
  }

  support::TemporaryFolder folder_;
  const std::filesystem::path checkpoint_ = folder_.path() / "global_step_3";
};

using Lines = std::vector<std::string>;

TEST_F(ChangedKeysTest, AreToldWithBothValues) {
  save(config({"model.path=one", "optim.lr=1e-3", "optim.betas=[0.9,0.95]", "data.seed=1"}),
       checkpoint_);
  EXPECT_EQ(
      changes(config({"model.path=one", "optim.lr=1e-3", "optim.betas=[0.9,0.95]", "data.seed=1"})),
      Lines{});
  EXPECT_EQ(changes(config({"model.path=two", "optim.betas=[0.9,0.99]", "data.seed=1",
                            "trainer.total_training_steps=9"})),
            (Lines{"model.path: one -> two (from the command line)",
                   "optim.betas: [0.9,0.95] -> [0.9,0.99] (from the command line)",
                   "optim.lr: 0.001 -> 1e-05 (from the defaults)",
                   "trainer.total_training_steps: null -> 9 (from the command line)"}));
}

TEST_F(ChangedKeysTest, HowToResumeIsNone) {
  save(config({}), checkpoint_);
  EXPECT_EQ(changes(config(
                {"trainer.resume_mode=resume_path", "trainer.resume_from_path=run/global_step_3"})),
            Lines{});
}

TEST_F(ChangedKeysTest, OfAnEarlierVersionTheRunsFolderMayKnow) {
  EXPECT_EQ(changes(config({"optim.lr=1"})), Lines{}) << "not known";
  save(config({"optim.lr=2"}), folder_.path());
  EXPECT_EQ(changes(config({"optim.lr=1"})), Lines{"optim.lr: 2 -> 1 (from the command line)"});
  // A key that the version did not have yet, and one that is no more.
  std::filesystem::create_directories(checkpoint_);
  std::ofstream(checkpoint_ / kSavedConfigFile) << "optim.lr: 1\ngone: 3\n";
  const Lines all = changes(config({"optim.lr=1", "data.seed=5"}));
  EXPECT_EQ(all, (Lines{"data.seed: not set -> 5 (from the command line)", "gone: 3 -> not set"}));
}

}  // namespace
}  // namespace rl
