// The setup of a stage's workers, and the checkpoint that later stages go on from.
#include "rl/run/stage_trainer.h"

#include <gtest/gtest.h>

#include <fstream>

#include "rl/checkpoint/checkpoint.h"
#include "rl/config/stage_keys.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;

class StageResultTest : public ::testing::Test {
 protected:
  // A complete checkpoint with one file, `weights` as a path in it.
  void save(std::int64_t step, const std::string& weights) const {
    auto writer = CheckpointWriter::begin(runs_.path(), step);
    ASSERT_TRUE(writer.ok()) << writer.status().to_string();
    const fs::path file = writer->folder() / weights;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << std::string("\2\0\0\0\0\0\0\0{}", 10);  // of no tensors
    const auto committed = writer->commit({weights});
    ASSERT_TRUE(committed.ok()) << committed.status().to_string();
  }

  const support::TemporaryFolder runs_;
};

TEST_F(StageResultTest, TheNewestHasItsModelWhereItsKindOfRunPutsIt) {
  save(2, "huggingface/model.safetensors");
  auto result = find_stage_result(runs_.path());
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(result->step, 2);
  EXPECT_EQ(result->model, runs_.path() / "global_step_2" / "huggingface");
  EXPECT_TRUE(result->adapter.empty());
  save(10, "actor/lora_adapter/adapter.safetensors");
  result = find_stage_result(runs_.path());
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(result->step, 10);
  EXPECT_EQ(result->adapter, runs_.path() / "global_step_10" / "actor" / "lora_adapter");
  EXPECT_TRUE(result->model.empty());
}

TEST_F(StageResultTest, ADamagedBestIsAnErrorAndADamagedNewestIsPassedOver) {
  save(2, "huggingface/model");
  save(4, "huggingface/model");
  EXPECT_EQ(find_stage_result(runs_.path(), /*best=*/true).status().code(), ErrorCode::kNotFound)
      << "none has been marked";
  ASSERT_TRUE(mark_best_checkpoint(runs_.path(), 4).ok());
  EXPECT_EQ(find_stage_result(runs_.path(), /*best=*/true)->step, 4);
  std::ofstream(runs_.path() / "global_step_4/huggingface/model") << "eight";
  EXPECT_EQ(find_stage_result(runs_.path())->step, 2);
  const auto best = find_stage_result(runs_.path(), /*best=*/true);
  EXPECT_EQ(best.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(best.status().message().find("the best checkpoint"), std::string::npos)
      << best.status().message();
}

TEST_F(StageResultTest, AFolderWithoutACheckpointIsNamed) {
  const auto result = find_stage_result(runs_.path());
  EXPECT_EQ(result.status().code(), ErrorCode::kNotFound);
  EXPECT_NE(result.status().message().find(runs_.path().string()), std::string::npos)
      << result.status().message();
}

// The folder of a model from the hub is another one on each machine, and so is the toy's.
TEST(StageSetup, WorkersFindAModelByWhatOtherMachinesHaveOfIt) {
  const support::TemporaryFolder folder;
  const auto spec_of = [&](const std::string& model) {
    auto config =
        Config::load({.file = {}, .overrides = {"model.path=" + model}, .keys = &sft_keys()});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    StageSetup setup{.config = std::move(*config), .options = {}, .model = folder.path() / "found"};
    setup.options.folder = "runs";
    return setup.spec("sft", WorkerSlots());
  };
  const std::string found = folder.file("found");
  EXPECT_EQ(spec_of("org/name").model, found);
  EXPECT_EQ(spec_of("org/name").model_name, "org/name");
  EXPECT_EQ(spec_of(folder.path().string()).model_name, found) << "it is a folder already";
  EXPECT_EQ(spec_of("toy").model_name, found);
  EXPECT_TRUE(fs::path(spec_of("toy").run_folder).is_absolute());
}

}  // namespace
}  // namespace rl
