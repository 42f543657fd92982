#include "rl/app/dry_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "rl/app/stage_command.h"
#include "rl/checkpoint/model_identity.h"
#include "rl/checkpoint/resume.h"
#include "rl/config/stage_keys.h"
#include "rl/run/preference/preference_stage.h"
#include "rl/run/sft/sft_stage.h"
#include "rl/worker/toy_model.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

struct Told {
  std::string text;
  std::string error;
};

Told tell(std::vector<std::string> overrides, const std::vector<NodeRoom>& nodes = {}) {
  std::vector<std::string> all = {"data.dataset_name=toy",       "actor_rollout_ref.model.path=toy",
                                  "data.train_batch_size=16",    "data.max_prompt_length=32",
                                  "data.max_response_length=16", "actor_rollout_ref.rollout.n=4"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const auto config = Config::load({std::nullopt, all});
  if (!config.ok()) return {"", config.status().message()};
  std::ostringstream out;
  const runtime::Status status = dry_run(*config, out, nodes);
  return {out.str(), status.ok() ? "" : status.message()};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(DryRun, SaysBatchesAndSteps) {
  const Told told = tell({"actor_rollout_ref.actor.ppo_mini_batch_size=8", "data.toy.rows=100",
                          "trainer.total_epochs=2"});
  EXPECT_EQ(told.error, "");
  EXPECT_TRUE(has(told.text, "16 prompts x 4 responses = 64 samples")) << told.text;
  EXPECT_TRUE(has(told.text, "2 optimizer steps of 8 prompts (32 samples)")) << told.text;
  EXPECT_TRUE(has(told.text, "100 rows, 6 steps an epoch, 12 steps in all")) << told.text;
}

TEST(DryRun, SaysTheMemoryOfEachRole) {
  const Told plain = tell({});
  EXPECT_TRUE(has(plain.text, "policy (generates and trains) x 1: ")) << plain.text;
  EXPECT_TRUE(has(plain.text, "optimizer ")) << plain.text;
  EXPECT_FALSE(has(plain.text, "reference x"));
  EXPECT_FALSE(has(plain.text, "critic x"));
  const Told all =
      tell({"actor_rollout_ref.actor.use_kl_loss=true", "algorithm.adv_estimator=gae",
            "actor_rollout_ref.actor.ppo_mini_batch_size=16", "trainer.n_gpus_per_node=2"});
  EXPECT_EQ(all.error, "");
  EXPECT_TRUE(has(all.text, "reference x 2: ")) << all.text;
  EXPECT_TRUE(has(all.text, "critic x 2: ")) << all.text;
}

TEST(DryRun, SaysWhatWorkersKeepOnce) {
  const std::vector<NodeRoom> nodes = {{"node a", 1e12, 2}};
  const std::string key = "actor_rollout_ref.actor.fsdp_config.zero_level=";
  const Told fits = tell({"trainer.n_gpus_per_node=2"}, nodes);
  EXPECT_TRUE(has(fits.text, key + "auto is 0: the run fits")) << fits.text;
  EXPECT_FALSE(has(fits.text, "gathered units ")) << fits.text;
  EXPECT_FALSE(has(tell({}, nodes).text, key)) << "one worker";
  const Told weights = tell({"trainer.n_gpus_per_node=2", key + "3"}, nodes);
  EXPECT_EQ(weights.error, "");
  EXPECT_FALSE(has(weights.text, key)) << weights.text;
  for (const char* part : {"weights ", "sum of gradients ", "optimizer ", "gradients of a leaf ",
                           "buckets of sums ", "gathered units ", "gathered weights "})
    EXPECT_TRUE(has(weights.text, part)) << part << " in: " << weights.text;
}

TEST(DryRun, SaysWhichFrozenModelsAreKeptOnce) {
  const std::string section = "actor_rollout_ref.ref.fsdp_config.", level = section + "zero_level";
  const auto four = [&](std::vector<std::string> overrides) {
    overrides.emplace_back("trainer.n_gpus_per_node=4");
    overrides.emplace_back("actor_rollout_ref.actor.use_kl_loss=true");
    return tell(std::move(overrides), {{"node a", 1e12, 4}});
  };
  EXPECT_TRUE(has(four({}).text, level + "=auto is 0: the run fits")) << four({}).text;
  const Told once = four({level + "=3"});
  EXPECT_EQ(once.error, "");
  EXPECT_TRUE(has(once.text, "actor_rollout_ref.ref: 4 workers keep the weights once"))
      << once.text;
  EXPECT_TRUE(has(once.text, "gathered units ")) << once.text;
  EXPECT_FALSE(has(tell({level + "=3", "trainer.n_gpus_per_node=4"}).text, "gathered units "))
      << "there is no reference";
  EXPECT_TRUE(has(four({level + "=3", section + "fsdp_size=2"}).text,
                  "actor_rollout_ref.ref: 2 groups of 2 workers; each group"));
  EXPECT_TRUE(has(four({section + "fsdp_size=2"}).text, section + "fsdp_size=2 has no effect"));
  EXPECT_TRUE(has(four({level + "=3", section + "fsdp_size=3"}).error,
                  section + "fsdp_size: must be -1 or a divisor"));
  EXPECT_TRUE(has(four({level + "=2"}).error, level))
      << "of what is frozen there are weights alone";
  const Told device = four({level + "=3", "trainer.device=cuda"});
  EXPECT_TRUE(has(device.text, "4 workers keep the weights once")) << device.text << device.error;
}

TEST(DryRun, SaysWhichGroupsKeepTheWeightsOnce) {
  const std::string section = "actor_rollout_ref.actor.fsdp_config.";
  const std::string size = section + "fsdp_size=", level = section + "zero_level=";
  const auto four = [&](std::vector<std::string> overrides) {
    overrides.emplace_back("trainer.n_gpus_per_node=4");
    return tell(std::move(overrides));
  };
  const Told groups = four({level + "3", size + "2"});
  EXPECT_EQ(groups.error, "");
  EXPECT_TRUE(has(groups.text, "actor_rollout_ref.actor: 2 groups of 2 workers; each group"))
      << groups.text;
  EXPECT_TRUE(has(four({size + "2"}).text, size + "2 has no effect with " + level + "auto"));
  EXPECT_TRUE(has(four({level + "3", size + "1"}).text, " makes " + level + "3 the same as 2"));
  for (const char* all : {"-1", "4"})
    EXPECT_FALSE(has(four({level + "3", size + all}).text, "groups of")) << all;
  for (const std::string wrong : {"3", "8"}) {
    const Told refused = four({size + wrong});
    EXPECT_TRUE(has(refused.error, section + "fsdp_size: must be")) << refused.error;
    EXPECT_TRUE(has(refused.error, "divisor of the number of workers, which is 4, got " + wrong))
        << refused.error;
  }
  EXPECT_TRUE(has(four({size + "0"}).error, "fsdp_size")) << four({size + "0"}).error;
  EXPECT_TRUE(
      has(four({"algorithm.adv_estimator=gae", "critic.model.fsdp_config.fsdp_size=3"}).error,
          "critic.fsdp.fsdp_size: must be"));
}

TEST(DryRun, RefusesWhatTheNodesHaveNoMemoryFor) {
  const std::vector<std::string> eight = {"trainer.n_gpus_per_node=8"};
  const std::vector<NodeRoom> small = {{"node a", 1e9, 2}};
  const Told refused = tell(eight, small);
  EXPECT_TRUE(has(refused.error, "do not fit the nodes' memory: policy (generates and trains) x 8"))
      << refused.error;
  EXPECT_TRUE(has(refused.error, "1.0 GB on node a")) << refused.error;
  EXPECT_TRUE(has(refused.text, "8 workers are more than the CPUs of a node (2)")) << refused.text;
  EXPECT_EQ(tell(eight, {{"node a", 1e12, 2}}).error, "") << "CPUs are for a warning only";
  EXPECT_EQ(tell(eight).error, "");
}

TEST(DryRun, RefusesCpusThatAPrivateClusterNeverHas) {
  const std::vector<std::string> four = {"trainer.cpus_per_worker=4"};
  std::vector<NodeRoom> nodes = {{"this machine", 1e12, 2}};
  const Told waits = tell(four, nodes);
  EXPECT_EQ(waits.error, "");
  EXPECT_TRUE(has(waits.text, "they wait for one that has as many")) << waits.text;
  nodes[0].is_private = true;
  const Told refused = tell(four, nodes);
  EXPECT_TRUE(has(refused.error, "trainer.cpus_per_worker=4")) << refused.error;
  EXPECT_FALSE(has(refused.text, "they wait")) << refused.text;
}

TEST(DryRun, RefusesMoreNodesThanThereAre) {
  const std::vector<std::string> two = {"trainer.nnodes=2",
                                        "actor_rollout_ref.actor.ppo_mini_batch_size=16"};
  const std::vector<NodeRoom> one = {{"node a", 1e12, 2}},
                              both = {{"node a", 1e12, 2}, {"node b", 1e12, 2}};
  EXPECT_TRUE(has(tell(two, one).error, "trainer.nnodes=2, but the cluster has 1 node(s)"));
  EXPECT_EQ(tell(two, both).error, "");
  EXPECT_EQ(tell(two).error, "");
}

TEST(DryRun, DoesNotJudgeNamesThatTheHubMayHave) {
  for (const char* name : {"gpt2", "org/name"}) {
    const Told told = tell({std::string("actor_rollout_ref.model.path=") + name});
    EXPECT_FALSE(has(told.error, "there is no")) << told.error;
  }
  EXPECT_TRUE(
      has(tell({"actor_rollout_ref.model.path=model.gguf"}).error, "there is no model.gguf here"));
}

TEST(DryRun, SaysTheMemoryOfDevices) {
  const std::vector<std::string> plain = {"actor_rollout_ref.actor.use_kl_loss=true"};
  EXPECT_FALSE(has(tell(plain).text, "memory of each device"));
  std::vector<std::string> on_device = plain;
  on_device.push_back("trainer.device=cuda");
  const Told there = tell(on_device);
  EXPECT_EQ(there.error, "");
  EXPECT_TRUE(has(there.text, "memory of each device (cuda), at its peak:\n")) << there.text;
  EXPECT_TRUE(has(there.text, "of each process on the host")) << there.text;
  EXPECT_FALSE(has(there.text, "activations")) << there.text;
  on_device.push_back("actor_rollout_ref.actor.fsdp_config.offload_policy=true");
  on_device.push_back("actor_rollout_ref.ref.fsdp_config.param_offload=true");
  const Told leaving = tell(on_device);
  EXPECT_EQ(leaving.error, "");
  EXPECT_TRUE(has(leaving.text, "memory of each device (cuda)")) << leaving.text;
}

TEST(DryRun, CountsPassesOfTheSizeThatTheyHave) {
  const auto activations = [](std::vector<std::string> overrides) {
    const std::string text = tell(std::move(overrides)).text;
    const std::size_t begin = text.find("activations ");
    return begin == std::string::npos ? std::string()
                                      : text.substr(begin, text.find_first_of(",)", begin) - begin);
  };
  const std::string dynamic = "actor_rollout_ref.actor.use_dynamic_bsz=true";
  const std::string size = "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=";
  EXPECT_NE(activations({}), "");
  EXPECT_NE(activations({dynamic, size + "64"}), activations({}));
  EXPECT_EQ(activations({dynamic, size + "100000"}), activations({})) << "more do not pay on a CPU";
}

TEST(DryRun, ATeacherTakesMemoryAndMustBeNamed) {
  const std::string path = "distillation.teacher_models.teacher_model.model_path";
  const Told told = tell({"distillation.enabled=true", path + "=toy", "trainer.n_gpus_per_node=2"});
  EXPECT_EQ(told.error, "");
  EXPECT_TRUE(has(told.text, "teacher x 2: ")) << told.text;
  EXPECT_TRUE(has(tell({"distillation.enabled=true", path + "=/no/such/teacher"}).text,
                  "teacher /no/such/teacher: not counted"));
  EXPECT_TRUE(has(tell({"distillation.enabled=true"}).error, path + " is not set"));
  EXPECT_FALSE(has(tell({path + "=toy"}).text, "teacher x"));
  std::vector<std::string> several = {"distillation.enabled=true"};
  for (const std::string name : {"one", "two"})
    several.insert(several.end(), {"distillation.teacher_models." + name + ".model_path=toy",
                                   "distillation.teacher_models." + name + ".key=" + name});
  EXPECT_TRUE(has(tell(several).text, "teacher one x 1: ")) << tell(several).text;
  EXPECT_TRUE(has(tell(several).text, "teacher two x 1: ")) << tell(several).text;
  several.pop_back();
  EXPECT_TRUE(has(tell(several).error, "distillation.teacher_models.two.key is not set"))
      << tell(several).error;
}

TEST(DryRun, KeysThatContradictEachOtherAreNamedTogether) {
  const Told told =
      tell({"actor_rollout_ref.actor.ppo_mini_batch_size=6", "trainer.n_gpus_per_node=32"});
  EXPECT_TRUE(has(told.error, "less than the 32 workers")) << told.error;
  EXPECT_TRUE(has(told.error, "is not a multiple of actor_rollout_ref.actor.ppo_mini_batch_size=6"))
      << told.error;
}

TEST(DryRun, AValidationHasNoBatchesToCut) {
  EXPECT_EQ(tell({"trainer.val_only=true", "trainer.n_gpus_per_node=32"}).error, "");
}

TEST(DryRun, AGroupOfOneIsPointedOut) {
  const Told told = tell({"actor_rollout_ref.rollout.n=1"});
  EXPECT_EQ(told.error, "") << "articles train so";
  EXPECT_TRUE(has(told.text, "rollout.n is 1: a response's score is its advantage then"))
      << told.text;
}

TEST(DryRun, LengthsThatAreSaidTwiceHaveToAgree) {
  EXPECT_TRUE(
      has(tell({"actor_rollout_ref.rollout.response_length=8"}).error, "data.max_response_length"));
  EXPECT_EQ(tell({"actor_rollout_ref.rollout.response_length=16",
                  "actor_rollout_ref.rollout.prompt_length=32"})
                .error,
            "");
}

TEST(DryRun, SaysWhatItCanWithoutDataOrModel) {
  const Told told = tell({"data.dataset_name=null", "data.train_files=/no/such.jsonl",
                          "actor_rollout_ref.model.path=org/name"});
  EXPECT_EQ(told.error, "data file /no/such.jsonl: No such file or directory")
      << "and the hub may have the model";
  EXPECT_EQ(tell({"actor_rollout_ref.model.path=org/name"}).error, "");
  const std::string two = "parallel_config.tensor_parallel_size=2";
  EXPECT_TRUE(has(tell({"actor_rollout_ref.model.path=org/name", two}).error,
                  "parallel_config.tensor_parallel_size: must be a divisor"))
      << "one worker is no two, whatever the model";
  EXPECT_TRUE(has(tell({"actor_rollout_ref.model.path=/no/model"}).error,
                  "actor_rollout_ref.model.path: there is no /no/model here"));
  EXPECT_TRUE(has(told.text, "not counted: ")) << told.text;
  EXPECT_TRUE(has(told.text, "/no/such.jsonl")) << told.text;
  EXPECT_TRUE(has(told.text, "memory:\n  not known: ")) << told.text;
}

TEST(DryRun, DataThatAreThereAndBrokenAreAnError) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("starling_broken_" + std::to_string(::getpid()) + ".jsonl");
  std::ofstream(file) << "{\"prompt\": \"ab\"}\n{\"prompt\": 7}\n";
  const Told told = tell({"data.dataset_name=null", "data.train_files=" + file.string()});
  std::filesystem::remove(file);
  EXPECT_TRUE(has(told.error, file.string() + ":2: 'prompt' must be a text or a list of messages"))
      << told.error;
  EXPECT_TRUE(has(told.text, "memory of each process")) << "what can be said is said all the same";
}

// What a run would find before its first step, too.
TEST(DryRun, DataThatDoNotFitTheRunAreAnError) {
  EXPECT_TRUE(has(tell({"data.toy.rows=8"}).error, "data.train_batch_size"))
      << tell({"data.toy.rows=8"}).error;
  EXPECT_TRUE(has(tell({"data.max_prompt_length=2"}).error, "data.max_prompt_length"))
      << tell({"data.max_prompt_length=2"}).error;
  EXPECT_TRUE(has(tell({"data.val_files=/no/val.parquet", "trainer.test_freq=1"}).error,
                  "/no/val.parquet"));
  EXPECT_EQ(tell({"data.val_files=/no/val.parquet", "trainer.val_before_train=false",
                  "trainer.test_freq=-1"})
                .error,
            "")
      << "it is not read";
  EXPECT_TRUE(has(tell({"data.adarft.enable=true"}).error, "difficulty"))
      << tell({"data.adarft.enable=true"}).error;
  EXPECT_TRUE(has(tell({"reward.custom_reward_function.path=/no/r.py"}).error,
                  "reward.custom_reward_function.path: there is no file /no/r.py here"));
  EXPECT_TRUE(has(tell({"reward.shared_library.path=/no/r.so"}).error,
                  "reward.shared_library.path: there is no file /no/r.so here"));
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() /
      ("starling_truthless_" + std::to_string(::getpid()) + ".jsonl");
  std::ofstream rows(file);
  for (int i = 0; i < 16; ++i)
    rows << "{\"prompt\": \"ab\", \"answer\": " << (i == 9 ? "null" : "\"b\"") << "}\n";
  rows.close();
  const Told told =
      tell({"data.dataset_name=null", "data.train_files=" + file.string(), "reward.rule=contains"});
  std::filesystem::remove(file);
  EXPECT_TRUE(has(told.error, file.string() + ":10")) << told.error;
}

/// A toy model that has a chat template, data, and a reward function.
class DryRunOfFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const runtime::Status made = make_toy_model(folder_.path() / "model", {.positions = 256});
    ASSERT_TRUE(made.ok()) << made.to_string();
    std::ofstream(folder_.path() / "model/chat_template.jinja")
        << "{% for m in messages %}<{{ m.role }}>\n{{ m.content }}\n{% endfor %}";
    std::ofstream(folder_.path() / "reward.py") << "def compute_score(**kwargs): return 0.0\n";
  }

  Told tell_of(const std::string& row, std::vector<std::string> overrides = {}) {
    std::ofstream rows(folder_.path() / "rows.jsonl");
    for (int i = 0; i < 16; ++i) rows << row << "\n";
    rows.close();
    const std::string at = folder_.path().string();
    overrides.insert(overrides.begin(),
                     {"data.dataset_name=null", "data.train_files=" + at + "/rows.jsonl",
                      "actor_rollout_ref.model.path=" + at + "/model", "data.max_prompt_length=200",
                      "reward.custom_reward_function.path=" + at + "/reward.py"});
    return tell(std::move(overrides));
  }

  support::TemporaryFolder folder_;
};

TEST_F(DryRunOfFiles, TheFirstRowIsShownAsModelAndRewardGetIt) {
  const Told told = tell_of(
      R"({"prompt": [{"role": "user", "content": "abc"}], "answer": "cba", "data_source": "d", "extra_info": {"index": 3}})");
  EXPECT_EQ(told.error, "");
  EXPECT_TRUE(has(told.text, "rows.jsonl:1), as the model reads it:\n  | <user>\n  | abc\n"))
      << told.text;
  EXPECT_TRUE(has(told.text,
                  "  its answer: \"cba\"\n  what the reward gets: the response, "
                  "ground_truth \"cba\", data_source \"d\", extra_info {\"index\":3}\n"))
      << told.text;
  EXPECT_FALSE(has(told.text, "note: ")) << told.text;
}

TEST_F(DryRunOfFiles, RowsWithoutAnAnswerAreReportedWithTheirColumns) {
  const Told told = tell_of(R"({"prompt": [{"role": "user", "content": "abc"}], "reply": "cba"})");
  EXPECT_EQ(told.error, "");
  EXPECT_TRUE(has(told.text, "rows.jsonl:1: no answer: it has 'prompt', 'reply', and no value in"))
      << told.text;
  EXPECT_TRUE(has(told.text, "data.columns.answer")) << told.text;
  EXPECT_TRUE(has(told.text, "ground_truth null")) << told.text;
  const Told named = tell_of(R"({"prompt": [{"role": "user", "content": "abc"}], "reply": "cba"})",
                             {"data.columns.answer=reply"});
  EXPECT_FALSE(has(named.text, "note: ")) << named.text;
}

TEST_F(DryRunOfFiles, ValidationFilesAreReportedToo) {
  const std::string validation = (folder_.path() / "validation.jsonl").string();
  std::ofstream(validation) << R"({"prompt": "abc", "reply": "cba"})"
                            << "\n";
  const char* const row = R"({"prompt": [{"role": "user", "content": "abc"}], "answer": "cba"})";
  const Told told = tell_of(row, {"data.val_files=" + validation, "trainer.test_freq=1"});
  EXPECT_EQ(told.error, "");
  EXPECT_TRUE(has(told.text, "note: " + validation + ":1: no answer")) << told.text;
  EXPECT_TRUE(has(told.text, "note: " + validation + ":1: the prompt is plain")) << told.text;
  EXPECT_FALSE(has(told.text, "/rows.jsonl:1: no answer")) << told.text;
}

TEST_F(DryRunOfFiles, ModelsOfTheHubAreThoseOfTheCache) {
  const auto hub = folder_.path() / "cache/models--gpt2";
  const std::string commit(40, 'a');
  std::filesystem::create_directories(hub / "refs");
  std::ofstream(hub / "refs/main") << commit;
  std::filesystem::create_directories(hub / "snapshots");
  std::filesystem::copy(folder_.path() / "model", hub / "snapshots" / commit);
  ::setenv("HF_HUB_CACHE", (folder_.path() / "cache").c_str(), 1);
  const char* const row =
      R"({"prompt": [{"role": "user", "content": "abc"}], "answer": "cba", "response": "cba"})";
  const Told there = tell_of(row, {"actor_rollout_ref.model.path=gpt2"});
  const Told missing = tell_of(row, {"actor_rollout_ref.model.path=org/other"});
  const auto stage = [&](const std::string& model) {
    const auto config = Config::load(
        {.file = {},
         .overrides = {"data.train_files=" + (folder_.path() / "rows.jsonl").string(),
                       "data.max_length=200", "data.train_batch_size=16", "model.path=" + model},
         .keys = &sft_keys()});
    CHECK(config.ok());
    SftStage sft;
    std::ostringstream out;
    const runtime::Status status = stage_dry_run(*config, sft, out, {});
    return Told{out.str(), status.ok() ? "" : status.message()};
  };
  const Told stage_there = stage("gpt2"), stage_missing = stage("other");
  ::unsetenv("HF_HUB_CACHE");
  EXPECT_EQ(there.error, "");
  EXPECT_TRUE(has(there.text, "policy (generates and trains) x 1: ")) << there.text;
  EXPECT_TRUE(has(there.text, "as the model reads it")) << there.text;
  EXPECT_FALSE(has(there.text, "a dry run does not")) << there.text;
  EXPECT_EQ(missing.error, "");
  EXPECT_TRUE(has(missing.text, "note: actor_rollout_ref.model.path: org/other: ")) << missing.text;
  EXPECT_TRUE(has(missing.text, "a run fetches it, a dry run does not")) << missing.text;
  EXPECT_TRUE(has(missing.text, "memory:\n  not known: the model is not here")) << missing.text;
  EXPECT_EQ(stage_there.error, "");
  EXPECT_TRUE(has(stage_there.text, "worker x 1: ")) << stage_there.text;
  EXPECT_EQ(stage_missing.error, "");
  EXPECT_TRUE(has(stage_missing.text, "note: model.path: other: ")) << stage_missing.text;
  EXPECT_TRUE(has(stage_missing.text, "not known without the model")) << stage_missing.text;
}

TEST_F(DryRunOfFiles, AWarmStartsDataAreOpenedAndCounted) {
  const char* const row = R"({"prompt": [{"role": "user", "content": "abc"}], "answer": "cba"})";
  const std::string file = (folder_.path() / "demonstrations.jsonl").string();
  const auto warm = [&](const std::string& demonstration, const std::vector<NodeRoom>& nodes = {}) {
    std::ofstream rows(file);
    for (int i = 0; i < 4; ++i) rows << demonstration;
    rows.close();
    std::vector<std::string> overrides = {"data.sft_files=" + file,
                                          "sft.steps=2",
                                          "sft.train_batch_size=4",
                                          "data.max_response_length=200",
                                          "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16",
                                          "actor_rollout_ref.actor.use_dynamic_bsz=false",
                                          "actor_rollout_ref.rollout.n=1"};
    std::ofstream training(folder_.path() / "rows.jsonl");
    for (int i = 0; i < 16; ++i) training << row << "\n";
    training.close();
    const std::string at = folder_.path().string();
    overrides.insert(overrides.begin(),
                     {"data.dataset_name=null", "data.train_files=" + at + "/rows.jsonl",
                      "actor_rollout_ref.model.path=" + at + "/model", "data.max_prompt_length=50",
                      "reward.custom_reward_function.path=" + at + "/reward.py"});
    return tell(std::move(overrides), nodes);
  };
  const Told plain = warm("{\"prompt\": \"abc\", \"response\": \"cba\"}\n");
  EXPECT_EQ(plain.error, "");
  EXPECT_TRUE(has(plain.text, "note: " + file + ":1: the prompt is plain")) << plain.text;
  EXPECT_TRUE(has(warm("{\"prompt\": \"abc\", \"answer\": \"cba\"}\n").error,
                  "warm start: " + file + ":1"));
  std::filesystem::remove(file);
  const Told missing = tell_of(row, {"data.sft_files=" + file, "sft.steps=2"});
  EXPECT_TRUE(has(missing.error, "warm start: ") && has(missing.error, file)) << missing.error;
  const Told unknown = tell_of(
      row, {"data.sft_files=" + file, "sft.steps=2", "actor_rollout_ref.model.path=org/other"});
  EXPECT_TRUE(has(unknown.error, "warm start: ") && has(unknown.error, file)) << unknown.error;
  EXPECT_EQ(tell_of(row, {"data.sft_files=" + file}).error, "") << "no steps of it";
}

TEST_F(DryRunOfFiles, WhatIsNotInTheCacheOfAMachineThatIsOfflineIsAnError) {
  const auto pairs = folder_.path() / "pairs.jsonl";
  std::ofstream(pairs) << R"({"prompt": "abc", "chosen": "cba", "rejected": "a"})"
                       << "\n"
                       << R"({"prompt": "bcd", "chosen": "cba", "rejected": "b"})"
                       << "\n";
  const auto dpo = [&](const std::string& reference) {
    const auto config = Config::load(
        {.file = {},
         .overrides = {"data.train_files=" + pairs.string(), "data.max_length=200",
                       "data.train_batch_size=2", "preference.reference_path=" + reference,
                       "model.path=" + (folder_.path() / "model").string()},
         .keys = &dpo_keys()});
    CHECK(config.ok());
    PreferenceStage stage;
    std::ostringstream out;
    const runtime::Status status = stage_dry_run(*config, stage, out, {});
    return Told{out.str(), status.ok() ? "" : status.message()};
  };
  ::setenv("HF_HUB_CACHE", (folder_.path() / "cache").c_str(), 1);
  const Told reference = dpo("org/other");
  ::setenv("HF_HUB_OFFLINE", "1", 1);
  const Told offline = dpo("org/other");
  const char* const row = R"({"prompt": [{"role": "user", "content": "abc"}], "answer": "cba"})";
  const Told train = tell_of(row, {"actor_rollout_ref.model.path=org/other"});
  ::unsetenv("HF_HUB_OFFLINE");
  ::unsetenv("HF_HUB_CACHE");
  EXPECT_EQ(reference.error, "");
  for (const char* part : {"note: preference.reference_path: org/other: ", "1 an epoch",
                           "its prompt (", "worker x 1: ", "counted as if it were model.path"})
    EXPECT_TRUE(has(reference.text, part)) << part << " in: " << reference.text;
  const std::string why = "HF_HUB_OFFLINE keeps a run from fetching it";
  EXPECT_TRUE(has(offline.error, "preference.reference_path: org/other") && has(offline.error, why))
      << offline.error;
  EXPECT_TRUE(has(offline.text, "its prompt (")) << offline.text;
  EXPECT_TRUE(has(train.error, "actor_rollout_ref.model.path: org/other") && has(train.error, why))
      << train.error;
}

TEST_F(DryRunOfFiles, TheToyModelGoesOnFromARunOfItselfAlone) {
  const auto folder = folder_.path() / "run";
  const auto checkpoint = folder / "global_step_3";
  std::filesystem::create_directories(checkpoint);
  std::ofstream(folder_.path() / "rows.jsonl") << R"({"prompt": "abc", "response": "cba"})"
                                               << "\n";
  const auto of_toy = [&](const std::string& seed, const std::string& fingerprint) {
    std::ofstream(checkpoint / kRunStateFile) << nlohmann::json{
        {"stage", "sft"},
        {"model", {{"name", "toy"}, {"fingerprint", fingerprint}, {"adapter", false}}}};
    const auto config = Config::load(
        {.file = {},
         .overrides = {"data.train_files=" + (folder_.path() / "rows.jsonl").string(),
                       "data.max_length=60", "data.train_batch_size=1", "model.path=toy",
                       "trainer.seed=" + seed, "trainer.default_local_dir=" + folder.string()},
         .keys = &sft_keys()});
    CHECK(config.ok());
    SftStage stage;
    std::ostringstream out;
    const runtime::Status status = stage_dry_run(*config, stage, out, {});
    return Told{out.str(), status.ok() ? "" : status.message()};
  };
  const auto toy = folder_.path() / "toy";
  ASSERT_TRUE(make_toy_model(toy, {.seed = 5}).ok());
  const auto identity = identify_model("toy", toy);
  ASSERT_TRUE(identity.ok());
  const Told same = of_toy("5", identity->fingerprint), other = of_toy("5", "0123");
  EXPECT_EQ(same.error, "");
  EXPECT_TRUE(has(same.text, "continues from " + checkpoint.string())) << same.text;
  EXPECT_TRUE(has(other.error, "of a run of the model toy")) << other.error << other.text;
}

TEST_F(DryRunOfFiles, TheLevelThatFitsWithTheDatasRowsIsSaidToBeThat) {
  std::ofstream rows(folder_.path() / "rows.jsonl");
  for (int i = 0; i < 64; ++i)
    rows << R"({"prompt": "abc", "response": "cba"})"
         << "\n";
  rows.close();
  const auto config =
      Config::load({.file = {},
                    .overrides = {"data.train_files=" + (folder_.path() / "rows.jsonl").string(),
                                  "data.max_length=256", "data.train_batch_size=64",
                                  "data.use_dynamic_bsz=false", "data.micro_batch_size_per_gpu=32",
                                  "trainer.n_gpus_per_node=2",
                                  "model.path=" + (folder_.path() / "model").string()},
                    .keys = &sft_keys()});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  const auto told = [&](const std::vector<NodeRoom>& nodes) {
    SftStage stage;
    std::ostringstream out;
    const runtime::Status status = stage_dry_run(*config, stage, out, nodes);
    return Told{out.str(), status.ok() ? "" : status.message()};
  };
  const std::string level = "engine.zero_level=auto is 0: the run fits";
  const std::string rows_text = "with the data's rows of up to ";
  const Told wide = told({{"node a", 1e12, 2}});
  EXPECT_TRUE(has(wide.text, "  " + level)) << wide.text;
  EXPECT_TRUE(has(wide.text, rows_text)) << wide.text;
  // Between what the data's rows take and what rows of data.max_length would.
  for (double bytes = 2e8; bytes < 1e10; bytes *= 1.02) {
    const Told one = told({{"node a", bytes, 2}});
    if (!one.error.empty() || !has(one.text, "note: with rows of data.max_length")) continue;
    EXPECT_FALSE(has(one.text, "\n  " + level)) << one.text;
    EXPECT_TRUE(has(one.text, "tokens engine.zero_level=auto is ")) << one.text;
    if (has(one.text, "tokens " + level)) return;  // smaller nodes want a higher one
  }
  ADD_FAILURE() << "no node is too small for the longest rows alone: " << wide.text;
}

TEST_F(DryRunOfFiles, AStageSaysWhetherItsReferenceIsKeptOnce) {
  const std::string pairs = (folder_.path() / "pairs.jsonl").string();
  std::ofstream(pairs) << R"({"prompt": "abc", "chosen": "cba", "rejected": "a"})"
                       << "\n"
                       << R"({"prompt": "bcd", "chosen": "dcb", "rejected": "b"})"
                       << "\n";
  const std::string key = "preference.reference_zero_level";
  const auto told = [&](std::vector<std::string> overrides) {
    for (const std::string& given :
         {"data.train_files=" + pairs, std::string("data.max_length=200"),
          std::string("data.train_batch_size=2"), std::string("trainer.n_gpus_per_node=2"),
          "model.path=" + (folder_.path() / "model").string()})
      overrides.push_back(given);
    const auto config = Config::load({.file = {}, .overrides = overrides, .keys = &dpo_keys()});
    if (!config.ok()) return Told{"", config.status().message()};
    PreferenceStage stage;
    std::ostringstream out;
    const NodeRoom node{"node a", 1e12, 2};
    const runtime::Status status = stage_dry_run(*config, stage, out, {&node, 1});
    return Told{out.str(), status.ok() ? "" : status.message()};
  };
  const Told whole = told({});
  EXPECT_EQ(whole.error, "");
  EXPECT_TRUE(has(whole.text, key + "=auto is 0: the run fits")) << whole.text;
  const Told once = told({key + "=3"});
  EXPECT_EQ(once.error, "");
  EXPECT_TRUE(has(once.text, "preference.reference: 2 workers keep the weights once")) << once.text;
  const Told device = told({key + "=3", "trainer.device=cuda"});
  EXPECT_TRUE(has(device.text, "preference.reference: 2 workers keep the weights once"))
      << device.text << device.error;
  EXPECT_TRUE(has(device.text, "memory of each device (cuda), at its peak:")) << device.text;
  EXPECT_TRUE(has(told({key + "=1"}).error, key)) << told({key + "=1"}).error;
}

TEST_F(DryRunOfFiles, AStageTellsOfPlainPrompts) {
  const auto notes = [&](const std::string& form) {
    std::ofstream(folder_.path() / "pairs.jsonl")
        << R"({"prompt": "abc", "response": "cba", "chosen": "cba", "rejected": "a", "label": true})"
        << "\n"
        << R"({"prompt": "bcd", "response": "cba", "chosen": "cba", "rejected": "b", "label": true})"
        << "\n";
    std::string all;
    for (const KeyTable* keys : {&sft_keys(), &dpo_keys(), &kto_keys()}) {
      std::vector<std::string> overrides = {
          "data.train_files=" + (folder_.path() / "pairs.jsonl").string(), "data.max_length=200",
          "data.train_batch_size=2", "model.path=" + (folder_.path() / "model").string()};
      if (!form.empty()) overrides.push_back("data.prompt_form=" + form);
      const auto config = Config::load({.file = {}, .overrides = overrides, .keys = keys});
      CHECK(config.ok());
      std::unique_ptr<DataStage> stage = std::make_unique<PreferenceStage>();
      if (keys == &sft_keys()) stage = std::make_unique<SftStage>();
      std::ostringstream out;
      const runtime::Status status = stage_dry_run(*config, *stage, out, {});
      EXPECT_TRUE(status.ok()) << keys->command() << ": " << status.message();
      const bool noted = has(out.str(), "note: ") && has(out.str(), "pairs.jsonl:1: the prompt is");
      all += std::string(keys->command()) + (noted ? " noted\n" : "\n");
    }
    return all;
  };
  EXPECT_EQ(notes(""), "sft noted\ndpo noted\nkto noted\n");
  EXPECT_EQ(notes("plain"), "sft\ndpo\nkto\n");
}

TEST_F(DryRunOfFiles, PlainPromptsForAChatModelAreReportedWithTheKey) {
  const char* const row = R"({"prompt": "abc", "answer": "cba"})";
  EXPECT_TRUE(has(tell_of(row).text, "data.prompt_form=chat")) << tell_of(row).text;
  for (const char* form : {"data.prompt_form=chat", "data.prompt_form=plain"})
    EXPECT_FALSE(has(tell_of(row, {form}).text, "note: ")) << form;
}

TEST(DryRun, PartsThatContradictEachOtherAreNamed) {
  EXPECT_TRUE(has(tell({"data.adarft.enable=true", "algorithm.filter_groups.enable=true"}).error,
                  "data.adarft.enable with algorithm.filter_groups.enable=true"));
  EXPECT_TRUE(has(tell({"global_profiler.steps=[0]"}).error, "global_profiler.steps"));
}

TEST(DryRun, ACriticOfItsOwnModelTakesThatModelsMemory) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("starling_critic_" + std::to_string(::getpid()));
  ASSERT_TRUE(
      make_toy_model(folder, {.layers = 1, .hidden_size = 16, .intermediate_size = 16}).ok());
  const auto critic = [](const std::string& text) {
    const std::size_t begin = text.find("critic x 1: ");
    return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
  };
  const Told as_policy = tell({"algorithm.adv_estimator=gae"}),
             small = tell({"algorithm.adv_estimator=gae", "critic.model.path=" + folder.string()});
  const Told unknown = tell({"algorithm.adv_estimator=gae", "critic.model.path=org/none"});
  std::filesystem::remove_all(folder);
  EXPECT_NE(critic(small.text), "");
  EXPECT_NE(critic(small.text), critic(as_policy.text));
  EXPECT_EQ(critic(unknown.text), critic(as_policy.text));
  EXPECT_TRUE(has(unknown.text, "critic org/none: counted as if it were the policy's"))
      << unknown.text;
}

TEST(DryRun, ValuesOutOfRangeAreErrors) {
  EXPECT_TRUE(has(tell({"actor_rollout_ref.rollout.temperature=0"}).error, "temperature"));
  EXPECT_TRUE(has(tell({"actor_rollout_ref.actor.optim.lr=-1"}).error,
                  "actor_rollout_ref.actor.optim.lr: must be at least 0"));
  EXPECT_TRUE(has(tell({"critic.optim.lr=-1", "algorithm.adv_estimator=gae"}).error,
                  "critic.optim.lr: must be at least 0"));
  EXPECT_TRUE(has(tell({"data.max_response_length=-5"}).error,
                  "data.max_response_length: must be at least 1, got -5"));
}

}  // namespace
}  // namespace rl
