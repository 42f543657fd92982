#include "rl/run/pipeline_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::ErrorCode;

class PipelineFileTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.file(name)) << text;
    return folder_.file(name);
  }
  runtime::Result<PipelineFile> load(const std::string& text,
                                     const std::vector<std::string>& overrides = {}) const {
    return PipelineFile::load(write("all.yaml", text), overrides);
  }
  std::string why_not(const std::string& text,
                      const std::vector<std::string>& overrides = {}) const {
    const auto loaded = load(text, overrides);
    EXPECT_FALSE(loaded.ok()) << text;
    return loaded.status().message();
  }

  support::TemporaryFolder folder_;
};

TEST_F(PipelineFileTest, AStageHasTheKeysOfItsConfigFileAndBeforeThemItsOwn) {
  write("base.yaml", "optim.lr: 1\ndata.seed: 7\ntrainer.default_local_dir: elsewhere\n");
  const auto pipeline = load(
      "folder: " + folder_.file("runs") +
      "\nstages:\n  warm:\n    command: sft\n    config: base.yaml\n    optim: {lr: 2}\n  rl:\n"
      "    command: train\n    trainer.default_local_dir: " +
      folder_.file("own") + "/x/..\n");
  ASSERT_TRUE(pipeline.ok()) << pipeline.status().message();
  ASSERT_EQ(pipeline->stages.size(), 2u);
  const PipelineStage& warm = pipeline->stages[0];
  EXPECT_EQ(warm.name, "warm");
  EXPECT_EQ(warm.command, "sft");
  EXPECT_EQ(warm.folder, folder_.path() / "runs" / "warm");
  const auto config = stage_config(*pipeline, warm, /*placeholders=*/false);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ((*config)["optim.lr"], 2);
  EXPECT_EQ((*config)["data.seed"], 7);
  EXPECT_EQ((*config)["trainer.default_local_dir"], warm.folder.string())
      << "a config file's is not the stage's";
  EXPECT_EQ(warm.keys.front().origin, folder_.file("base.yaml") + ":1");
  EXPECT_EQ(pipeline->stages[1].folder, (folder_.path() / "own/").lexically_normal());
}

TEST_F(PipelineFileTest, WhatGoesBeforeAKeyDoesSoByItsOtherNamesToo) {
  write("base.yaml", "trainer.max_steps: 5\nnum_train_epochs: 3\nmodel.lora.rank: 8\n");
  const std::string text =
      "stages:\n  warm:\n    command: sft\n    config: base.yaml\n"
      "    trainer.total_training_steps: 7\n    data.chat_template: a\n";
  const auto pipeline =
      load(text, {"warm.trainer.total_epochs=2", "warm.model.custom_chat_template=b"});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status().message();
  const auto config = stage_config(*pipeline, pipeline->stages[0], /*placeholders=*/false);
  ASSERT_TRUE(config.ok()) << config.status().message();
  for (const char* older : {"trainer.max_steps", "num_train_epochs", "data.chat_template"})
    EXPECT_FALSE(config->contains(older)) << older;
  EXPECT_EQ((*config)["trainer.total_training_steps"], 7);
  EXPECT_EQ((*config)["trainer.total_epochs"], 2);
  EXPECT_EQ((*config)["model.custom_chat_template"], "b");
  EXPECT_EQ((*config)["model.lora.rank"], 8);
}

TEST_F(PipelineFileTest, AnOverrideGoesBeforeTheFile) {
  const auto pipeline = load("folder: /runs\nstages: {sft: {optim.lr: 1}}\n",
                             {"sft.optim.lr=2", "folder=" + folder_.file("other")});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status().message();
  EXPECT_EQ(pipeline->folder, folder_.path() / "other");
  EXPECT_EQ((*stage_config(*pipeline, pipeline->stages[0], false))["optim.lr"], 2);
}

TEST_F(PipelineFileTest, MistakesAreNamedWithTheirLine) {
  const std::string at = folder_.file("all.yaml");
  for (const auto& [text, told] : std::vector<std::pair<std::string, std::string>>{
           {"folder: runs\n", at + ": no stages"},
           {"folder: [a]\n", at + ":1: folder must be a text"},
           {"stages: 3\n", at + ":1: stages must be a dictionary"},
           {"stages: {sft: {optim.lr: 1}}\nsteps: 3\n",
            at + ":2: a pipeline has folder and stages"},
           {"stages: {a b: {optim.lr: 1}}\n", "not 'a b'"},
           {"stages: {sft: 3}\n", at + ":1: stage sft must be a dictionary of keys"},
           {"stages:\n  sft:\n    command: [sft]\n", at + ":3: stage sft: command must be a text"},
           {"stages: {warm: {optim.lr: 1}}\n", "stage warm: there is no command 'warm'"},
           {"stages: {sft: {config: none.yaml}}\n", "none.yaml"},
           {"stages: {sft: {trainer.default_local_dir: '${stages.sft.folder}/x'}}\n",
            "no stage of that name comes before this one"},
           {"stages: {sft: {trainer.default_local_dir: /a}, rm: {trainer.default_local_dir: /a}}\n",
            "stage rm: its folder /a is that of stage sft"}})
    EXPECT_NE(why_not(text).find(told), std::string::npos) << why_not(text);
  const std::string good = "stages: {sft: {optim.lr: 1}}\n";
  for (const auto& [override_text, told] : std::vector<std::pair<std::string, std::string>>{
           {"optim.lr=2", "write STAGE.key=value; the stages are sft"},
           {"sft=2", "write STAGE.key=value"},
           {"~sft.optim.lr", "is set, not removed"},
           {"folder=3", "folder must be a text"}})
    EXPECT_NE(why_not(good, {override_text}).find(told), std::string::npos)
        << why_not(good, {override_text});
  const std::string unreadable = why_not(good, {"[a=b,c=d]"}), named = "override '[a=b,c=d]': ";
  EXPECT_EQ(unreadable.find(named), unreadable.rfind(named)) << unreadable;
}

std::string with_reference(const std::string& reference, const std::string& more = "") {
  return "folder: /runs\nstages:\n  sft: {optim.lr: 1" + more +
         "}\n  rl:\n    command: train\n    data.train_files: [a, '" + reference + "/b']\n";
}

TEST_F(PipelineFileTest, AReferenceStandsForWhatAnEarlierStageMade) {
  const auto folders = load(with_reference("${stages.sft.folder}"));
  ASSERT_TRUE(folders.ok()) << folders.status().message();
  const auto config = stage_config(*folders, folders->stages[1], false);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ((*config)["data.train_files"], nlohmann::json({"a", "/runs/sft/b"}));

  const auto models = load(with_reference("${stages.sft.model}"));
  ASSERT_TRUE(models.ok()) << models.status().message();
  const auto later = stage_config(*models, models->stages[1], /*placeholders=*/true);
  ASSERT_TRUE(later.ok()) << later.status().message();
  EXPECT_EQ((*later)["data.train_files"][1], "/runs/sft/the model to come/b");
  const auto now = stage_config(*models, models->stages[1], /*placeholders=*/false).status();
  EXPECT_EQ(now.code(), ErrorCode::kNotFound);
  EXPECT_NE(now.message().find("stage rl: data.train_files (" + folder_.file("all.yaml") + ":6)"),
            std::string::npos)
      << now.message();
  EXPECT_NE(now.message().find("stage sft has no complete checkpoint"), std::string::npos)
      << now.message();
}

TEST_F(PipelineFileTest, AReferenceToWhatAStageWillNotHaveIsRefused) {
  for (const auto& [reference, told] : std::vector<std::pair<std::string, std::string>>{
           {"${stages.rl.model}", "no stage of that name comes before this one"},
           {"${stages.sft.weights}", "a stage has model, adapter, checkpoint"},
           {"${stages.sft.best_model}", "set trainer.save_best in stage sft"},
           {"${stages.sft.adapter}", "take ${stages.sft.model}, or set its lora_rank"}})
    EXPECT_NE(why_not(with_reference(reference)).find(told), std::string::npos)
        << why_not(with_reference(reference));
  EXPECT_TRUE(load(with_reference("${stages.sft.best_model}", ", trainer.save_best: loss")).ok());
  EXPECT_TRUE(load(with_reference("${stages.sft.adapter}", ", model.lora_rank: 8")).ok());
}

TEST_F(PipelineFileTest, APreviewHasTheFirstModelInPlaceOfWhatIsToCome) {
  const auto pipeline =
      load("folder: " + folder_.file("runs") +
           "\nstages:\n"
           "  sft: {model.path: toy, model.lora_rank: 4}\n"
           "  more: {command: sft, model.path: '${stages.sft.model}'}\n"
           "  rl:\n    command: train\n    actor_rollout_ref.model.path: ${stages.more.model}\n"
           "    trainer.resume_from_path: ${stages.more.checkpoint}\n"
           "    actor_rollout_ref.model.lora_adapter_path: ${stages.sft.adapter}\n"
           "  last: {command: sft, model.path: toy, data.train_files: "
           "'${stages.rl.folder}/rows.jsonl'}\n"
           "  other: {command: dpo, model.path: own}\n");
  ASSERT_TRUE(pipeline.ok()) << pipeline.status().message();
  const auto rl = preview_stage(*pipeline, pipeline->stages[2]);
  ASSERT_TRUE(rl.ok()) << rl.status().message();
  EXPECT_EQ(rl->config["actor_rollout_ref.model.path"], "toy");
  EXPECT_EQ(rl->config["actor_rollout_ref.model.lora_rank"], 4);
  EXPECT_FALSE(rl->config.contains("actor_rollout_ref.model.lora_adapter_path"));
  EXPECT_FALSE(rl->config.contains("trainer.resume_from_path"));
  EXPECT_EQ(rl->config["trainer.resume_mode"], "disable");
  ASSERT_EQ(rl->stand_ins.size(), 2u);
  EXPECT_EQ(rl->stand_ins[0],
            "actor_rollout_ref.model.path: toy in place of the model of stage more");
  const auto last = preview_stage(*pipeline, pipeline->stages[3]);
  EXPECT_FALSE(last.ok());
  EXPECT_NE(last.status().message().find("is made by stage rl"), std::string::npos)
      << last.status().message();
  const auto other = preview_stage(*pipeline, pipeline->stages[4]);
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_TRUE(other->stand_ins.empty());
  EXPECT_FALSE(other->config.contains("trainer.resume_mode"));
}

TEST(StageReferences, AreFoundInTextsAndLists) {
  using References = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(stage_references("${stages.a.model}:${stages.b-2.best_adapter}"),
            (References{{"a", "model"}, {"b-2", "best_adapter"}}));
  EXPECT_EQ(stage_references({"x", "${stages.a.folder}/y"}), (References{{"a", "folder"}}));
  EXPECT_EQ(stage_references("${data.seed}"), References());
  EXPECT_EQ(stage_references(3), References());
}

}  // namespace
}  // namespace rl
