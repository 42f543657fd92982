// Runs whose mini-batches are cut into leaves: the same numbers on any number of workers. And what
// ends a run whose workers wait for one that has stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rl/model/parameters.h"
#include "rl/model/save.h"
#include "tests/rl/model/fixtures.h"
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class LeavesTest : public TrainerTest {
 protected:
  // The model that a run on this many workers writes at its end. It says what `told` is.
  std::string model_of(const std::string& name, const std::string& command, int workers,
                       const std::string& told = {}) {
    const fs::path folder = folder_ / (name + std::to_string(workers));
    const Outcome run =
        shell("exec " + command +
              " trainer.save_freq=-1 trainer.gradient_leaves=4 "
              "trainer.n_gpus_per_node=" +
              std::to_string(workers) + " trainer.default_local_dir=" + folder.string());
    EXPECT_EQ(run.code, 0) << run.output;
    EXPECT_NE(run.output.find(told), std::string::npos) << run.output;
    std::string weights;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().filename() == "model.safetensors" ||
          entry.path().filename() == "adapter_model.safetensors" ||
          entry.path().filename() == "optimizer.safetensors")
        weights += entry.path().lexically_relative(folder).string() + read(entry.path());
    }
    EXPECT_FALSE(weights.empty()) << run.output;
    return weights;
  }
  // A mixture with the toy's tokenizer.
  std::string mixture() const {
    const fs::path path = folder_ / "mixture", toy = model();
    fs::create_directories(path);
    for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
      fs::copy_file(toy / file, path / file);
    auto fields =
        nlohmann::json::parse(read(testing::fixtures() / "models" / "mixtral" / "config.json"));
    const auto of_toy = nlohmann::json::parse(read(toy / "config.json"));
    for (const char* field : {"vocab_size", "eos_token_id", "pad_token_id"})
      fields[field] = of_toy.at(field);
    std::ofstream(path / "config.json") << fields;
    const auto config = ModelConfig::load(path);
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    EXPECT_TRUE(save_model_folder(*config, Parameters::random(*config, 1), path).ok());
    return path.string();
  }
  void expect_equal_on_any_number(const std::string& name, const std::string& command) {
    const std::string one = model_of(name, command, 1);
    for (const int workers : {2, 3, 4})
      EXPECT_TRUE(model_of(name, command, workers) == one) << name << ", " << workers;
  }
};

TEST_F(LeavesTest, TwentyStepsOnOneToFourWorkersWriteTheSameModel) {
  expect_equal_on_any_number(
      "grpo",
      train_command("data.train_batch_size=12 actor_rollout_ref.actor.ppo_mini_batch_size=6 "
                    "trainer.total_training_steps=20"));
}

TEST_F(LeavesTest, CriticsWarmStartsAndStepsOfUnevenSamplesToo) {
  const std::string three = "data.train_batch_size=6 trainer.total_training_steps=3 ";
  expect_equal_on_any_number(
      "gae", train_command(three + "algorithm.adv_estimator=gae critic.optim.lr=1e-3"));
  expect_equal_on_any_number("warm", train_command(three + "sft.steps=3 sft.train_batch_size=6"));
  expect_equal_on_any_number(
      "filtered", train_command(three + "algorithm.filter_groups.enable=true data.gen_batch_size=6 "
                                        "trainer.balance_batch=false"));
}

TEST_F(LeavesTest, WhatIsKeptOnceGivesTheSameModel) {
  const std::string command =
      train_command("data.train_batch_size=12 trainer.total_training_steps=6 ");
  const std::string whole = model_of("whole", command, 1);
  for (const char* level : {"1", "2", "3"}) {
    for (const int workers : {2, 3}) {
      const std::string zero = " actor_rollout_ref.actor.fsdp_config.zero_level=";
      EXPECT_TRUE(model_of(std::string("zero") + level, command + zero + level, workers) == whole)
          << "level " << level << ", " << workers << " workers";
    }
  }
  const std::string groups =
      " actor_rollout_ref.actor.fsdp_config.zero_level=3"
      " actor_rollout_ref.actor.fsdp_config.fsdp_size=2";
  EXPECT_TRUE(model_of("groups", command + groups, 4) == whole);
}

// Leaves have more tokens than a block of rows, so that both workers compute some.
TEST_F(LeavesTest, WorkersThatSharePassesWriteTheSameModel) {
  const std::string command =
      train_command("data.train_batch_size=32 trainer.total_training_steps=2 ");
  const std::string whole = model_of("alone", command, 1);
  const std::string actor = " actor_rollout_ref.actor.";
  EXPECT_TRUE(model_of("outputs",
                       command + actor + "strategy=megatron" + actor +
                           "megatron.tensor_model_parallel_size=2",
                       2, "1 team of 2 workers that share the outputs of each pass") == whole);
  EXPECT_TRUE(model_of("rows", command + actor + "ulysses_sequence_parallel_size=2", 2,
                       "1 team of 2 workers that share the rows of each pass") == whole);
}

// Whichever worker makes a matrix of a step orthogonal, and whichever level writes or reads the
// state.
TEST_F(LeavesTest, MuonTakesTheSameStepsOnEveryMesh) {
  const std::string actor = " actor_rollout_ref.actor.";
  const std::string command = train_command(
      "data.train_batch_size=12 trainer.total_training_steps=4" + actor + "optim.optimizer=Muon" +
      actor + "optim.lr=1e-2 actor_rollout_ref.model.path=" + model(/*layers=*/3));
  const std::string whole = model_of("alone", command, 1);
  const std::string zero = actor + "fsdp_config.zero_level=";
  for (const char* level : {"0", "1", "2", "3"})
    EXPECT_TRUE(model_of(std::string("level") + level, command + zero + level, 3) == whole)
        << "level " << level;
  EXPECT_TRUE(model_of("groups", command + zero + "3" + actor + "fsdp_config.fsdp_size=2", 4) ==
              whole);
  const std::string tensor = " parallel_config.tensor_parallel_size=2";
  const std::string pipeline = " parallel_config.pipeline_parallel_size=2";
  EXPECT_TRUE(model_of("tensor", command + tensor, 2) == whole);
  EXPECT_TRUE(model_of("sequence", command + actor + "ulysses_sequence_parallel_size=2", 2) ==
              whole);
  EXPECT_TRUE(model_of("stages", command + tensor + pipeline + zero + "3", 4) == whole);
}

// Leaves of one pass, and of several, which are in flight at once in pipelines.
TEST_F(LeavesTest, TwentyStepsOnEveryMeshWriteTheSameModel) {
  const std::string actor = " actor_rollout_ref.actor.";
  const std::string zero = actor + "fsdp_config.zero_level=";
  const std::string tensor = " parallel_config.tensor_parallel_size=2";
  const std::string pipeline = " parallel_config.pipeline_parallel_size=2";
  const std::string stages = "2 stages of 2 that share the outputs of each pass";
  for (const std::string& passes : {std::string(), actor + "ppo_micro_batch_size_per_gpu=4"}) {
    const std::string name = passes.empty() ? "one-" : "several-";
    const std::string command = train_command(
        "data.train_batch_size=12 actor_rollout_ref.actor.ppo_mini_batch_size=6 "
        "trainer.total_training_steps=20 actor_rollout_ref.model.path=" +
        model(/*layers=*/3) + passes);
    const std::string whole = model_of(name + "alone", command, 1);
    EXPECT_TRUE(model_of(name + "zero", command + zero + "3", 3) == whole);
    EXPECT_TRUE(model_of(name + "tensor", command + tensor, 2) == whole);
    EXPECT_TRUE(model_of(name + "sequence",
                         command + actor + "ulysses_sequence_parallel_size=2" + zero + "1",
                         2) == whole);
    EXPECT_TRUE(model_of(name + "pipeline", command + pipeline, 2) == whole);
    EXPECT_TRUE(model_of(name + "pipelines", command + pipeline + zero + "3", 4) == whole);
    EXPECT_TRUE(model_of(name + "stages", command + tensor + pipeline, 4, stages) == whole);
  }
}

// With dropout, and several passes of a leaf in flight where stages may have them.
TEST_F(LeavesTest, AnAdapterLearnsTheSameInTeamsOfEveryKind) {
  const std::string actor = " actor_rollout_ref.actor.";
  const std::string command = train_command(
      "data.train_batch_size=12 actor_rollout_ref.actor.ppo_mini_batch_size=6 "
      "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 trainer.total_training_steps=4 "
      "actor_rollout_ref.model.lora_rank=4 actor_rollout_ref.model.lora_dropout=0.1 "
      "actor_rollout_ref.actor.use_kl_loss=true");
  const std::string zero = actor + "fsdp_config.zero_level=3";
  const std::string tensor = " parallel_config.tensor_parallel_size=2";
  const std::string pipeline = " parallel_config.pipeline_parallel_size=2";
  const std::string dense = command + " actor_rollout_ref.model.path=" + model(/*layers=*/3);
  const std::string whole = model_of("alone", dense, 1);
  EXPECT_TRUE(model_of("pipeline", dense + pipeline, 2) == whole);
  EXPECT_TRUE(model_of("pipelines", dense + pipeline + zero, 4) == whole);
  EXPECT_TRUE(model_of("stages", dense + tensor + pipeline, 4) == whole);
  const std::string mixed = command + " actor_rollout_ref.model.path=" + mixture();
  const std::string experts =
      actor + "strategy=megatron" + actor + "megatron.expert_model_parallel_size=2";
  const std::string of_mixture = model_of("mixed", mixed, 1);
  EXPECT_TRUE(model_of("experts", mixed + experts, 2,
                       "share the rows of each pass and the experts") == of_mixture);
  EXPECT_TRUE(model_of("experts-stages", mixed + experts + pipeline, 4) == of_mixture);
}

TEST_F(LeavesTest, ATeachersDistributionsAreLearnedInTeamsOfEveryKind) {
  const std::string command =
      STARLING_BIN_DIR
      "/starling-rl sft data.dataset_name=toy data.toy.letters=4 data.toy.length=2 "
      "optim.lr=1e-3 data.train_batch_size=48 data.micro_batch_size_per_gpu=6 "
      "data.use_dynamic_bsz=false "
      "trainer.total_training_steps=3 trainer.logger=[console,file] distillation.topk=5 "
      "model.path=" +
      model(/*layers=*/3) + " distillation.teacher.path=" + model(/*layers=*/2);
  const std::string whole = model_of("alone", command, 1);
  EXPECT_TRUE(model_of("tensor", command + " engine.tensor_model_parallel_size=2", 2) == whole);
  EXPECT_TRUE(model_of("rows", command + " engine.ulysses_sequence_parallel_size=2", 2) == whole);
  const std::string pipeline = " engine.pipeline_model_parallel_size=2";
  EXPECT_TRUE(model_of("pipeline", command + pipeline, 2) == whole);
  EXPECT_TRUE(model_of("stages", command + pipeline + " engine.tensor_model_parallel_size=2", 4) ==
              whole);
}

// A critic learns too, after a warm start, and mini-batches have fewer prompts than workers.
TEST_F(LeavesTest, WeightsAreKeptOnceInEveryKindOfPass) {
  const std::string three = "data.train_batch_size=4 trainer.total_training_steps=3 ";
  const std::string command = train_command(
      three +
      "algorithm.adv_estimator=gae critic.optim.lr=1e-3 "
      "actor_rollout_ref.actor.ppo_mini_batch_size=2 actor_rollout_ref.actor.use_kl_loss=true "
      "sft.steps=2 sft.train_batch_size=4");
  const std::string whole = model_of("plain", command, 1);
  const std::string zero =
      " actor_rollout_ref.actor.fsdp_config.zero_level=3 critic.fsdp.zero_level=3";
  EXPECT_TRUE(model_of("once", command + zero, 3) == whole);
}

// The reference of a run, and that of a stage, with fewer rows than workers at the end.
TEST_F(LeavesTest, FrozenModelsThatAreKeptOnceGiveTheSameModel) {
  const std::string command = train_command(
      "data.train_batch_size=12 trainer.total_training_steps=4 "
      "actor_rollout_ref.actor.use_kl_loss=true actor_rollout_ref.actor.kl_loss_coef=0.1");
  const std::string whole = model_of("whole", command, 1);
  const std::string once = command + " actor_rollout_ref.ref.fsdp_config.zero_level=3";
  for (const int workers : {2, 3})
    EXPECT_TRUE(model_of("once", once, workers) == whole) << workers << " workers";
  EXPECT_TRUE(model_of("groups", once + " actor_rollout_ref.ref.fsdp_config.fsdp_size=2", 4) ==
              whole);
  const std::string rows =
      " data.dataset_name=toy data.toy.letters=4 data.toy.length=2 data.train_batch_size=6 "
      "optim.lr=1e-3 trainer.total_training_steps=4 trainer.logger=[console,file] model.path=" +
      model();
  const std::string dpo = STARLING_BIN_DIR "/starling-rl dpo" + rows;
  EXPECT_TRUE(model_of("dpo", dpo + " preference.reference_zero_level=3", 2) ==
              model_of("dpo", dpo, 1));
}

TEST_F(LeavesTest, TheStagesOfDataToo) {
  const std::string rows =
      " data.dataset_name=toy data.toy.letters=4 data.toy.length=2 data.train_batch_size=6 "
      "trainer.total_training_steps=5 trainer.logger=[console,file] model.path=" +
      model();
  expect_equal_on_any_number("sft", STARLING_BIN_DIR "/starling-rl sft" + rows);
}

TEST_F(LeavesTest, FewerLeavesThanWorkersAreRefused) {
  const Outcome run = train("trainer.gradient_leaves=1 trainer.n_gpus_per_node=2");
  EXPECT_NE(run.code, 0);
  EXPECT_NE(run.output.find("trainer.gradient_leaves"), std::string::npos) << run.output;
}

// Whichever role it plays, and wherever it stood.
TEST_F(LeavesTest, AStoppedWorkerEndsTheRunAndIsNamed) {
  const fs::path run = folder_ / "stopped";
  for (int victim = 0; victim < 4; ++victim) {
    fs::remove_all(run);
    fs::remove(folder_ / "output");
    fs::create_directories(folder_);
    const pid_t pid = start(train_command(
        "trainer.total_training_steps=100000 trainer.n_gpus_per_node=2 trainer.cpus_per_worker=1 "
        "trainer.rank_timeout=2 trainer.default_local_dir=" +
        run.string()));
    ASSERT_TRUE(wait_for_step(pid, run, 3)) << read(folder_ / "output");
    const std::vector<pid_t> all = workers();
    ASSERT_EQ(all.size(), 4u) << "two of the policy, two of the reward\n" << processes();
    ::kill(all[static_cast<std::size_t>(victim)], SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_NE(status, 0);
    const std::string output = read(folder_ / "output");
    EXPECT_TRUE(output.find("Policy rank ") != std::string::npos ||
                output.find("Reward rank ") != std::string::npos)
        << output;
    EXPECT_NE(output.find("does not answer for"), std::string::npos) << output;
    EXPECT_NE(output.find("trainer.rank_timeout"), std::string::npos) << output;
  }
}

// The reference is started last. Whether it is killed or stopped, the run ends in time.
TEST_F(LeavesTest, AReferenceThatIsKeptOnceAndGoesAwayIsNamed) {
  const fs::path run = folder_ / "gone";
  for (const int signal : {SIGSTOP, SIGKILL}) {
    fs::remove_all(run);
    fs::remove(folder_ / "output");
    fs::create_directories(folder_);
    const pid_t pid = start(train_command(
        "trainer.total_training_steps=100000 trainer.n_gpus_per_node=2 trainer.cpus_per_worker=1 "
        "trainer.rank_timeout=2 actor_rollout_ref.actor.use_kl_loss=true "
        "actor_rollout_ref.ref.fsdp_config.zero_level=3 trainer.default_local_dir=" +
        run.string()));
    ASSERT_TRUE(wait_for_step(pid, run, 3)) << read(folder_ / "output");
    std::vector<pid_t> all = workers();
    ASSERT_EQ(all.size(), 6u) << processes();
    ASSERT_EQ(::kill(*std::ranges::max_element(all), signal), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_NE(status, 0);
    const std::string output = read(folder_ / "output");
    EXPECT_NE(output.find(signal == SIGSTOP ? "Reference rank " : ": Reference "),
              std::string::npos)
        << output;
    EXPECT_NE(output.find(signal == SIGSTOP ? "does not answer for" : "killed by SIGKILL"),
              std::string::npos)
        << output;
    EXPECT_TRUE(all_end()) << processes();
  }
}

}  // namespace
}  // namespace rl
