#include "rl/app/export.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "rl/checkpoint/checkpoint.h"
#include "rl/model/lora.h"
#include "rl/model/save.h"
#include "rl/worker/toy_model.h"
#include "tests/rl/app/command_run.h"
#include "tests/support/file_bytes.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

class ExportCommand : public ::testing::Test {
 protected:
  ExportCommand() { make("model", 1); }

  void make(const std::string& name, std::uint64_t seed) const {
    ToyModelOptions options{.layers = 1, .hidden_size = 16, .intermediate_size = 16};
    options.seed = seed;
    EXPECT_TRUE(make_toy_model(file(name), options).ok());
  }
  std::string file(const std::string& name) const { return folder_.file(name); }
  CommandRun export_to_out(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"export", "--out", file("out")});
    return run_here(export_command, std::move(arguments));
  }
  void expect_nothing_new() const {
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      EXPECT_EQ(entry.path().filename(), "model");
  }

  const support::TemporaryFolder folder_;
};

TEST_F(ExportCommand, OfARunItIsTheNewestCheckpoint) {
  for (const std::int64_t step : {2, 3}) {
    auto checkpoint = CheckpointWriter::begin(file("run"), step);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().to_string();
    fs::create_directories(checkpoint->folder() / "actor");
    make("run_model", static_cast<std::uint64_t>(step));
    fs::rename(file("run_model"), checkpoint->folder() / "actor/huggingface");
    ASSERT_TRUE(checkpoint->commit({"actor/huggingface/config.json"}).ok());
  }
  const CommandRun done = export_to_out({"--checkpoint", file("run")});
  ASSERT_EQ(done.code, 0) << done.error;
  const fs::path newest = file("run/global_step_3/actor/huggingface");
  EXPECT_EQ(nlohmann::json::parse(done.out)["source"], newest.string());
  for (const char* same : {"model.safetensors", "tokenizer.json"}) {
    EXPECT_EQ(support::content_of(file("out") + "/" + same), support::content_of(newest / same))
        << same;
  }
}

TEST_F(ExportCommand, AnAdapterIsMergedIntoTheModelThatItIsFor) {
  const auto model = ModelConfig::load(file("model"));
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  LoraConfig config;
  config.rank = 2;
  config.base_model = file("model");
  const auto adapter = LoraAdapter::create(*model, config, 1);
  ASSERT_TRUE(adapter.ok()) << adapter.status().to_string();
  adapter->parameters().arena().fill_(0.25);  // a new one adds nothing
  const fs::path lora = file("step/actor/lora_adapter");
  fs::create_directories(lora);
  ASSERT_TRUE(adapter->save(lora).ok());
  const CommandRun done = export_to_out({"--checkpoint", file("step")});
  ASSERT_EQ(done.code, 0) << done.error;
  const nlohmann::json line = nlohmann::json::parse(done.out);
  EXPECT_EQ(line["source"], file("model"));
  EXPECT_EQ(line["adapter"], lora.string());
  const auto merged = Parameters::load(*model, file("model"));
  ASSERT_TRUE(merged.ok()) << merged.status().to_string();
  EXPECT_FALSE(verify_model_folder(*merged, file("out")).ok()) << "nothing was added";
  adapter->add_to(*merged, 1.0F);
  const runtime::Status same = verify_model_folder(*merged, file("out"));
  EXPECT_TRUE(same.ok()) << same.to_string();
}

TEST_F(ExportCommand, WeightsHaveTheTypeThatIsAskedFor) {
  const auto model = ModelConfig::load(file("model"));
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  const auto weights = Parameters::load(*model, file("model"));
  ASSERT_TRUE(weights.ok()) << weights.status().to_string();
  EXPECT_EQ(export_to_out({"--model", file("model"), "--dtype", "int8"}).code, 2);
  const CommandRun done = export_to_out({"--model", file("model"), "--dtype", "bfloat16"});
  ASSERT_EQ(done.code, 0) << done.error;
  const runtime::Status same = verify_model_folder(*weights, file("out"), {.dtype = DType::kBF16});
  EXPECT_TRUE(same.ok()) << same.to_string();
}

TEST_F(ExportCommand, AFailureBehindTheWeightsLeavesNothing) {
  const CommandRun failed =
      export_to_out({"--model", file("model"), "--tokenizer", file("no_tokenizer")});
  EXPECT_EQ(failed.code, 1);
  EXPECT_NE(failed.error.find(file("no_tokenizer")), std::string::npos) << failed.error;
  EXPECT_EQ(failed.out, "");
  expect_nothing_new();
}

TEST_F(ExportCommand, AnEmptyFolderIsTakenAndAnotherIsNotTouched) {
  fs::create_directories(file("out"));
  EXPECT_EQ(export_to_out({"--model", file("model")}).code, 0);
  const std::string written = support::content_of(file("out/model.safetensors"));
  EXPECT_FALSE(written.empty());
  make("other", 2);
  EXPECT_EQ(export_to_out({"--model", file("other")}).code, 1);
  EXPECT_EQ(support::content_of(file("out/model.safetensors")), written);
}

TEST_F(ExportCommand, AFolderWithoutACheckpointIsNamed) {
  const support::TemporaryFolder empty;
  const CommandRun none = export_to_out({"--checkpoint", empty.path().string()});
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.error.find(empty.path().string() + ": no checkpoint there"), std::string::npos)
      << none.error;
  expect_nothing_new();
}

}  // namespace
}  // namespace rl
