#include "rl/app/checkpoint_folder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "rl/checkpoint/checkpoint.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

class CheckpointFolder : public ::testing::Test {
 protected:
  fs::path save(std::int64_t step) const {
    auto writer = CheckpointWriter::begin(run(), step);
    EXPECT_TRUE(writer.ok()) << writer.status().to_string();
    EXPECT_TRUE(writer->write_json("config.json", {{"step", step}}).ok());
    EXPECT_TRUE(writer->commit({"config.json"}).ok());
    return checkpoint_path(run(), step);
  }
  fs::path put(const std::string& file) const {
    const fs::path path = folder_.path() / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "{}";
    return path.parent_path();
  }
  fs::path run() const { return folder_.path() / "run"; }

  const support::TemporaryFolder folder_;
};

TEST_F(CheckpointFolder, OfARunItIsTheNewest) {
  const fs::path older = save(9), newer = save(10);
  EXPECT_EQ(find_checkpoint(run()).value_or(""), newer);
  EXPECT_EQ(find_checkpoint(older).value_or(""), older) << "one that is named is that one";
}

TEST_F(CheckpointFolder, ADamagedOneIsPassedOverInARunAndRefusedByItsName) {
  const fs::path older = save(9), newer = save(10);
  std::ofstream(newer / "config.json") << "{\"step\": 7}";
  EXPECT_EQ(find_checkpoint(run()).value_or(""), older);
  support::expect_failure(find_checkpoint(newer).status(), runtime::ErrorCode::kInvalidArgument,
                          {"config.json"});
}

TEST_F(CheckpointFolder, AModelsFolderIsItselfAndNoFolderIsNamed) {
  const fs::path model = put("model/config.json");
  EXPECT_EQ(find_checkpoint(model).value_or(""), model);
  support::expect_failure(find_checkpoint(model / "none").status(), runtime::ErrorCode::kNotFound,
                          {(model / "none").string()});
  EXPECT_FALSE(find_checkpoint(model / "config.json").ok()) << "a file";
}

TEST_F(CheckpointFolder, TheTrainedModelGoesBeforeOthers) {
  const fs::path checkpoint = folder_.path() / "step";
  EXPECT_EQ(model_in_checkpoint(checkpoint), std::nullopt);
  const fs::path itself = put("step/config.json");
  EXPECT_EQ(model_in_checkpoint(checkpoint), itself);
  const fs::path of_stage = put("step/huggingface/config.json");
  EXPECT_EQ(model_in_checkpoint(checkpoint), of_stage);
  const fs::path of_actor = put("step/actor/huggingface/config.json");
  EXPECT_EQ(model_in_checkpoint(checkpoint), of_actor);
  EXPECT_EQ(model_in_checkpoint(of_actor), of_actor);
}

TEST_F(CheckpointFolder, AnAdapterIsNoModel) {
  const fs::path checkpoint = folder_.path() / "step";
  const fs::path adapter = put("step/actor/lora_adapter/adapter_config.json");
  EXPECT_EQ(model_in_checkpoint(checkpoint), std::nullopt);
  EXPECT_EQ(adapter_in_checkpoint(checkpoint), adapter);
  EXPECT_EQ(adapter_in_checkpoint(adapter), adapter);
  EXPECT_EQ(adapter_in_checkpoint(put("other/huggingface/config.json")), std::nullopt);
}

}  // namespace
}  // namespace rl
