#include "rl/trainer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <future>
#include <memory>

#include "rl/checkpoint/checkpoint.h"
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

TEST_F(TrainerTest, AResumedRunGivesTheNumbersOfAnUninterruptedOne) {
  const std::string options =
      "sft.steps=3 actor_rollout_ref.actor.use_kl_loss=true "
      "actor_rollout_ref.actor.ppo_mini_batch_size=2 trainer.save_freq=3 ";
  const fs::path whole = folder_ / "whole";
  const fs::path halves = folder_ / "halves";
  Outcome run =
      train(options + "trainer.total_training_steps=6 trainer.default_local_dir=" + whole.string());
  ASSERT_EQ(run.code, 0) << run.output;
  run = train(options +
              "trainer.total_training_steps=3 trainer.default_local_dir=" + halves.string());
  ASSERT_EQ(run.code, 0) << run.output;
  run = train(options +
              "trainer.total_training_steps=6 trainer.default_local_dir=" + halves.string());
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_NE(run.output.find("continuing after step 3"), std::string::npos) << run.output;

  EXPECT_EQ(numbers(whole).size(), 9u);  // three of the warm start
  EXPECT_EQ(numbers(whole), numbers(halves));
  for (const char* file :
       {"actor/huggingface/model.safetensors", "actor/optimizer.safetensors", "trainer.json"}) {
    EXPECT_EQ(read(whole / "global_step_6" / file), read(halves / "global_step_6" / file)) << file;
  }

  // A third time there is nothing to do.
  run = train(options +
              "trainer.total_training_steps=6 trainer.default_local_dir=" + halves.string());
  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.output.find("nothing to do"), std::string::npos) << run.output;
}

// A user's Python file that now and then crashes, fails or hangs: the samples are left out, the run
// goes on, and no process stays.
TEST_F(TrainerTest, SamplesThatCannotBeScoredAreLeftOut) {
  fs::create_directories(folder_);
  const fs::path file = folder_ / "reward.py";
  std::ofstream(file)
      << "import os, time\n"
         "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
         "    if solution_str.startswith(\"a\"): os.abort()\n"
         "    if solution_str.startswith(\"b\"): raise ValueError(\"no b\")\n"
         "    return {\"score\": float(len(solution_str)), \"length\": len(solution_str)}\n";
  const std::string python =
      "trainer.total_training_steps=3 reward.retries=0 reward.timeout=60 reward.num_workers=2 "
      "custom_reward_function.path=" +
      file.string() + " ";
  for (const char* estimator :
       {"", "algorithm.adv_estimator=gae algorithm.use_kl_in_reward=true "}) {
    SCOPED_TRACE(estimator);
    const fs::path run_folder = folder_ / (*estimator ? "ppo" : "grpo");
    const Outcome run =
        train(python + estimator +
              "actor_rollout_ref.actor.ppo_mini_batch_size=2 trainer.default_local_dir=" +
              run_folder.string());
    ASSERT_EQ(run.code, 0) << run.output;
    EXPECT_NE(run.output.find("ValueError: no b"), std::string::npos) << run.output;
    double failed = 0;
    std::ifstream lines(run_folder / "metrics.jsonl");
    for (std::string line; std::getline(lines, line);) {
      const auto data = nlohmann::json::parse(line)["data"];
      failed += data["reward/failed"].get<double>();
      EXPECT_EQ(data["reward/crashes"].get<double>() + data["reward/errors"].get<double>(),
                data["reward/failed"].get<double>())
          << line;
      // In GRPO a sample that is alone in its group goes as well.
      if (*estimator != 0) {
        EXPECT_NEAR(data["reward/length"].get<double>(), data["critic/score/mean"].get<double>(),
                    1e-6)
            << line;
      }
      EXPECT_TRUE(std::isfinite(data["actor/grad_norm"].get<double>())) << line;
    }
    EXPECT_GT(failed, 0);
  }
  const Outcome strict = train(python + "reward.on_failure=error trainer.default_local_dir=" +
                               (folder_ / "strict").string());
  EXPECT_NE(strict.code, 0);
  EXPECT_NE(strict.output.find("reward.on_failure=exclude leaves such samples out"),
            std::string::npos)
      << strict.output;
}

TEST_F(TrainerTest, RewardsThatCannotWorkAreFoundBeforeTheFirstStep) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "broken.py") << "def compute_score(:\n";
  for (const auto& [options, why] :
       {std::pair<std::string, const char*>{
            "custom_reward_function.path=" + (folder_ / "broken.py").string(), "SyntaxError"},
        {"custom_reward_function.path=" + (folder_ / "none.py").string(), "there is no file"},
        {"reward.http.url=http://127.0.0.1:1/score", "the reward server cannot be reached"},
        {"reward.shared_library.path=" + (folder_ / "none.so").string(), "there is no file"},
        {"reward.rule=regex", "reward.rule_kwargs.pattern"}}) {
    const Outcome run = train("trainer.total_training_steps=1 " + options);
    EXPECT_NE(run.code, 0) << options;
    EXPECT_NE(run.output.find(why), std::string::npos) << run.output;
    EXPECT_FALSE(fs::exists(folder_ / "run" / "metrics.jsonl")) << options;
  }
}

// PPO with its own critic, with one on the policy's backbone, and an adapter: whatever is
// trained is in the checkpoint.
TEST_F(TrainerTest, CriticsAndAdaptersResumeWithTheSameNumbers) {
  struct Case {
    const char* name;
    std::string options;
    std::vector<const char*> files;
    const char* metric;
  };
  const std::string gae = "algorithm.adv_estimator=gae algorithm.lam=0.95 critic.optim.lr=1e-3 ";
  for (const Case& one :
       {Case{"critic",
             gae + "trainer.critic_warmup=2 algorithm.use_kl_in_reward=true",
             {"actor/huggingface/model.safetensors", "critic/huggingface/model.safetensors",
              "critic/optimizer.safetensors"},
             "critic/vf_loss"},
        Case{"shared",
             gae + "actor_rollout_ref.model.custom_forward=true",
             {"actor/huggingface/model.safetensors", "actor/optimizer.safetensors"},
             "critic/vf_explained_var"},
        Case{"lora",
             "actor_rollout_ref.model.lora_rank=4 sft.steps=2 "
             "actor_rollout_ref.actor.use_kl_loss=true",
             {"actor/lora_adapter/adapter_model.safetensors", "actor/lora_adapter/tokenizer.json",
              "actor/optimizer.safetensors"},
             "actor/kl_loss"}}) {
    SCOPED_TRACE(one.name);
    const std::string options =
        one.options + " actor_rollout_ref.actor.ppo_mini_batch_size=2 trainer.save_freq=2 ";
    const fs::path whole = folder_ / one.name / "whole";
    const fs::path halves = folder_ / one.name / "halves";
    Outcome run = train(
        options + "trainer.total_training_steps=4 trainer.default_local_dir=" + whole.string());
    ASSERT_EQ(run.code, 0) << run.output;
    for (const int steps : {2, 4}) {
      run = train(options + "trainer.total_training_steps=" + std::to_string(steps) +
                  " trainer.default_local_dir=" + halves.string());
      ASSERT_EQ(run.code, 0) << run.output;
    }
    EXPECT_NE(run.output.find("continuing after step 2"), std::string::npos) << run.output;
    ASSERT_EQ(numbers(whole), numbers(halves));
    EXPECT_NE(numbers(whole).back().find(std::string("\"") + one.metric + "\":"), std::string::npos)
        << numbers(whole).back();
    for (const char* file : one.files) {
      const std::string bytes = read(whole / "global_step_4" / file);
      EXPECT_FALSE(bytes.empty()) << file;
      EXPECT_EQ(bytes, read(halves / "global_step_4" / file)) << file;
    }
  }
  // What a run leaves generates as any model and adapter do.
  const std::string shared = (folder_ / "shared/whole/global_step_4/actor/huggingface").string();
  const std::string adapter = (folder_ / "lora/whole/global_step_4/actor/lora_adapter").string();
  const Outcome merged =
      shell(STARLING_BIN_DIR "/starling-rl export --checkpoint " +
            (folder_ / "lora/whole").string() + " --out " + (folder_ / "merged").string());
  EXPECT_EQ(merged.code, 0) << merged.output;
  EXPECT_NE(merged.output.find("lora_adapter"), std::string::npos) << merged.output;
  for (const std::string& what : {"--model " + (folder_ / "merged").string(), "--model " + shared,
                                  "--model " + model() + " --adapter " + adapter}) {
    const Outcome text =
        shell(STARLING_BIN_DIR "/starling-rl generate " + what + " --prompt ab --max-new-tokens 4");
    EXPECT_EQ(text.code, 0) << text.output;
    EXPECT_FALSE(text.output.empty());
  }
}

TEST_F(TrainerTest, TheToyCommandOfTheArticlesRuns) {
  const Outcome run =
      shell("cd " + folder_.string() +
            " && exec " STARLING_BIN_DIR
            "/starling train data.dataset_name=toy data.train_batch_size=4 "
            "actor_rollout_ref.model.path=" +
            model() +
            " actor_rollout_ref.rollout.name=sglang trainer.max_steps=10 trainer.log_interval=1 "
            "data.max_response_length=8 data.max_prompt_length=48");
  ASSERT_EQ(run.code, 0) << run.output;
  for (int step = 1; step <= 10; ++step)
    EXPECT_NE(run.output.find("step:" + std::to_string(step) + "/10 - epoch:"), std::string::npos)
        << run.output;
  for (const char* metric : {"actor/pg_loss:", "critic/score/mean:", "actor/ppo_kl:",
                             "actor/pg_clipfrac:", "response_length/mean:", "timing_s/gen:",
                             "timing_s/update_actor:", "timing_s/step:", "perf/throughput:"}) {
    EXPECT_NE(run.output.find(metric), std::string::npos) << metric << "\n" << run.output;
  }
}

// A cluster with a declared memory stands for one that is too small.
TEST_F(TrainerTest, SaysWhichClusterItJoinsAndRefusesWhatThatHasNoMemoryFor) {
  const Outcome head = shell(STARLING_BIN_DIR
                             "/starling start --head --port 0 --num-cpus 2 "
                             "--resources \"{\\\"memory\\\": 1500000000}\" | tail -n 1");
  ASSERT_EQ(head.code, 0) << head.output;
  const std::string address = head.output.substr(0, head.output.find('\n'));
  const std::string eight =
      "data.train_batch_size=8 trainer.n_gpus_per_node=8 trainer.total_training_steps=1 ";
  for (const std::string how : {"", "--dry-run "}) {
    const Outcome refused = train(how + eight);
    EXPECT_EQ(refused.code, 1) << how << refused.output;
    for (const std::string& part :
         {std::string("do not fit the nodes") + "\x27" +
              " memory: policy (generates and trains) x 8 of",
          std::string("reward x 8 of"), std::string("1.5 GB on node "), " at " + address,
          std::string("8 workers are more than the CPUs of a node (2)"),
          "joins the cluster at " + address + " (", std::string(", since 20"),
          std::string(" of 1 node:"), std::string("2 CPUs, 1.5 GB")})
      EXPECT_NE(refused.output.find(part), std::string::npos) << part << " in: " << refused.output;
    EXPECT_FALSE(fs::exists(folder_ / "run" / "metrics.jsonl"));
    EXPECT_EQ(
        shell(STARLING_BIN_DIR "/starling list workers --address " + address).output.find("policy"),
        std::string::npos);
  }
  fs::create_directories(folder_);
  std::ofstream rows(folder_ / "rows.jsonl");
  for (int i = 0; i < 16; ++i) rows << "{\"prompt\": \"a\", \"response\": \"b\"}\n";
  rows.close();
  const std::string stage = STARLING_BIN_DIR
                            "/starling-rl sft data.prompt_key=prompt data.response_key=response "
                            "model.path=toy data.train_batch_size=16 trainer.n_gpus_per_node=16 "
                            "trainer.total_training_steps=1 data.train_files=" +
                            (folder_ / "rows.jsonl").string() +
                            " trainer.default_local_dir=" + (folder_ / "stage").string();
  for (const std::string how : {" --dry-run", ""}) {
    const Outcome refused = shell("exec " + stage + how);
    EXPECT_EQ(refused.code, 1) << how << refused.output;
    EXPECT_NE(refused.output.find("memory: worker x 16 of"), std::string::npos) << refused.output;
  }
  // It fits this machine, in its own cluster.
  const Outcome alone = train("--private trainer.total_training_steps=1");
  EXPECT_EQ(alone.code, 0) << alone.output;
  EXPECT_NE(alone.output.find("its own cluster"), std::string::npos) << alone.output;
  EXPECT_EQ(alone.output.find("joins the cluster"), std::string::npos) << alone.output;
  EXPECT_EQ(train("--private --address " + address).code, 2);
  EXPECT_EQ(shell(STARLING_BIN_DIR "/starling stop --address " + address).code, 0);
}

// Whether it was asked for, or started since no other runs.
TEST_F(TrainerTest, CpusThatAPrivateClusterNeverHasAreRefusedAtOnce) {
  for (const std::string how : {"--private ", "", "--dry-run "}) {
    const Outcome refused = train(how + "trainer.cpus_per_worker=5000");
    EXPECT_EQ(refused.code, 1) << how << refused.output;
    EXPECT_NE(refused.output.find("trainer.cpus_per_worker=5000: the 1 worker(s) of a node ask for "
                                  "5000 CPUs"),
              std::string::npos)
        << refused.output;
    EXPECT_EQ(refused.output.find("wait for"), std::string::npos) << refused.output;
  }
  EXPECT_FALSE(fs::exists(folder_ / "run" / "metrics.jsonl"));
}

TEST_F(TrainerTest, TwoWorkersOnTwoNodesTakeTheStepsOfOne) {
  const std::string options =
      "trainer.total_training_steps=3 actor_rollout_ref.actor.use_kl_loss=true ";
  ASSERT_EQ(train(options + "trainer.default_local_dir=" + (folder_ / "one").string()).code, 0);
  const Outcome head =
      shell(STARLING_BIN_DIR "/starling start --head --port 0 --num-cpus 1 | tail -n 1");
  ASSERT_EQ(head.code, 0) << head.output;
  const std::string address = head.output.substr(0, head.output.find('\n'));
  Outcome run = shell(STARLING_BIN_DIR "/starling start --address " + address + " --num-cpus 1");
  EXPECT_EQ(run.code, 0) << run.output;
  if (run.code == 0) {
    run = train("--address " + address + " trainer.nnodes=2 " + options +
                "trainer.default_local_dir=" + (folder_ / "two").string());
    EXPECT_EQ(run.code, 0) << run.output;
    EXPECT_NE(run.output.find("2 worker(s) on 2 node(s)"), std::string::npos) << run.output;
  }
  EXPECT_EQ(shell(STARLING_BIN_DIR "/starling stop --address " + address).code, 0);
  const auto one = numbers(folder_ / "one");
  const auto two = numbers(folder_ / "two");
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t step = 0; step < one.size(); ++step) {
    const auto a = nlohmann::json::parse(one[step])["data"];
    const auto b = nlohmann::json::parse(two[step])["data"];
    for (const char* name : {"critic/score/mean", "response_length/mean"})
      EXPECT_EQ(a[name], b[name]) << name << " of step " << step + 1;
    EXPECT_NEAR(a["actor/grad_norm"].get<double>(), b["actor/grad_norm"].get<double>(),
                1e-3 * a["actor/grad_norm"].get<double>());
  }
}

/// What is said of a sample is said of this sample.
void expect_own_scores(const fs::path& dump) {
  std::ifstream in(dump);
  for (std::string line; std::getline(in, line);) {
    const auto sample = nlohmann::json::parse(line);
    const std::string output = sample["output"], truth = sample["gts"];
    if (sample.contains("length")) {
      EXPECT_EQ(sample["length"].get<double>(), static_cast<double>(output.size()));
      EXPECT_EQ(sample["first"].get<double>(), static_cast<double>(truth.front()));
      EXPECT_NEAR(sample["score"].get<double>(),
                  static_cast<double>(output.size()) / 10 + static_cast<double>(truth.front()),
                  1e-6);
    }
    std::string sorted = sample["input"].get<std::string>().substr(
        sample["input"].get<std::string>().size() - truth.size());
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, truth);
  }
}

/// The same numbers of one worker, of two with the samples as they were generated, and of two with
/// them spread. Whether spreading evened anything out.
bool expect_same_steps(const std::vector<std::vector<nlohmann::json>>& runs) {
  bool moved = false;
  for (std::size_t step = 0; step < 3; ++step) {
    const nlohmann::json &one = runs[0][step], &drawn = runs[1][step], &spread = runs[2][step];
    for (const char* metric : {"critic/score/mean", "critic/rewards/mean", "critic/advantages/max",
                               "response_length/mean", "actor/pg_loss", "actor/grad_norm",
                               "actor/kl_loss", "critic/vf_loss", "reward/length"}) {
      EXPECT_EQ(one.contains(metric), spread.contains(metric)) << metric;
      if (!one.contains(metric) || !spread.contains(metric)) continue;
      const double expected = one[metric];
      EXPECT_NEAR(spread[metric].get<double>(), expected, 1e-4 * std::abs(expected) + 1e-6)
          << metric << " of step " << step + 1;
      EXPECT_NEAR(drawn[metric].get<double>(), expected, 1e-4 * std::abs(expected) + 1e-6)
          << metric << " of step " << step + 1 << ", not spread";
    }
    if (spread["reward/failed"] != 0.0)
      continue;  // what is left out is not trained, wherever it is
    EXPECT_EQ(drawn["global_seqlen/balanced_max"], drawn["global_seqlen/max"]);
    // Mini-batches are evened out, and as a rule their sums with them.
    moved = moved || spread["global_seqlen/balanced_max"] < spread["global_seqlen/max"];
  }
  return moved;
}

// Responses of 1 to 16 tokens. What is computed does not depend on who computes it. That holds with
// estimates and references of each token, samples without a score and rewards of the user's, too.
TEST_F(TrainerTest, SamplesAreSpreadOverWorkersByTheirTokens) {
  const fs::path reward = folder_ / "reward.py";
  fs::create_directories(folder_);
  std::ofstream(reward)
      << "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
         "    if len(solution_str) % 7 == 3: raise ValueError('no score')\n"
         "    return {'score': len(solution_str) / 10 + ord(ground_truth[0]), 'length': "
         "len(solution_str), 'first': ord(ground_truth[0])}\n";
  const std::string python = "reward.custom_reward_function.path=" + reward.string() +
                             " reward.on_failure=exclude reward.retries=0 ";
  for (const auto& [name, options] : std::vector<std::pair<std::string, std::string>>{
           {"grpo", "actor_rollout_ref.actor.use_kl_loss=true "},
           {"gae", "algorithm.adv_estimator=gae algorithm.use_kl_in_reward=true "},
           {"remax", "algorithm.adv_estimator=remax "},
           {"pf_ppo", python + "algorithm.adv_estimator=gae algorithm.use_pf_ppo=true "
                               "algorithm.pf_ppo.reweight_method=pow "},
           {"python", python},
           {"gdpo",
            python + "algorithm.adv_estimator=gdpo algorithm.gdpo_reward_keys=[length,first] "},
           {"rounds", "algorithm.filter_groups.enable=true data.gen_batch_size=6 "},
           {"replay", "sample_store.enable=true "}}) {
    SCOPED_TRACE(name);
    std::vector<std::vector<nlohmann::json>> runs;
    for (const std::string workers :
         {"trainer.n_gpus_per_node=1", "trainer.n_gpus_per_node=2 trainer.balance_batch=false",
          "trainer.n_gpus_per_node=2"}) {
      const fs::path run_folder = folder_ / (name + std::to_string(runs.size()));
      const Outcome run =
          train(options +
                "data.max_response_length=16 data.train_batch_size=6 "
                "actor_rollout_ref.actor.ppo_mini_batch_size=3 trainer.total_training_steps=3 "
                "trainer.cpus_per_worker=1 " +
                workers + " trainer.rollout_data_dir=" + (run_folder / "dump").string() +
                " trainer.default_local_dir=" + run_folder.string());
      ASSERT_EQ(run.code, 0) << run.output;
      std::vector<nlohmann::json>& steps = runs.emplace_back();
      for (const std::string& line : numbers(run_folder))
        steps.push_back(nlohmann::json::parse(line)["data"]);
      ASSERT_EQ(steps.size(), 3u);
      expect_own_scores(run_folder / "dump" / "2.jsonl");
    }
    const bool moved = expect_same_steps(runs);
    EXPECT_TRUE(moved || options.starts_with(python));
  }
}

TEST_F(TrainerTest, BatchesThatDoNotDivideAreFoundBeforeTheFirstStep) {
  for (const auto& [options, told] : std::vector<std::pair<std::string, std::string>>{
           {"actor_rollout_ref.actor.ppo_mini_batch_size=3",
            "data.train_batch_size=4 is not a multiple of "
            "actor_rollout_ref.actor.ppo_mini_batch_size=3"},
           {"trainer.n_gpus_per_node=5 trainer.cpus_per_worker=1",
            "data.train_batch_size=4 is less than the 5 workers"}}) {
    const Outcome run = train("trainer.total_training_steps=1 " + options);
    EXPECT_EQ(run.code, 1);
    EXPECT_NE(run.output.find(told), std::string::npos) << run.output;
    EXPECT_FALSE(fs::exists(folder_ / "run" / "metrics.jsonl"));
  }
}

TEST_F(TrainerTest, HowResponsesAreDrawnDoesNotChangeTheirLogProbabilities) {
  const Outcome run = train(
      "trainer.total_training_steps=1 actor_rollout_ref.rollout.ignore_eos=true "
      "actor_rollout_ref.rollout.repetition_penalty=1.3");
  ASSERT_EQ(run.code, 0) << run.output;
  std::ifstream in(folder_ / "run" / "metrics.jsonl");
  const nlohmann::json step = nlohmann::json::parse(in)["data"];
  EXPECT_EQ(step["response_length/min"], step["response_length/max"]);
  EXPECT_EQ(step["response_length/clip_ratio"], 1.0);
  EXPECT_EQ(step["actor/ppo_kl"],
            0.0);  // the policy that learns gives them the same bits, without the penalty
  const Outcome wrong = train("trainer.total_training_steps=1 data.min_response_length=1000");
  EXPECT_NE(wrong.code, 0);
  EXPECT_NE(wrong.output.find("data.min_response_length"), std::string::npos) << wrong.output;
}

TEST_F(TrainerTest, SamplesOfEachStepAreDumpedAndARunMayOnlyValidate) {
  const std::string data = "data.toy.rows=8 data.val_max_samples=4 trainer.rollout_data_dir=" +
                           (folder_ / "samples").string() +
                           " trainer.validation_data_dir=" + (folder_ / "validation").string() +
                           " ";
  const Outcome run = train(data + "trainer.total_training_steps=2");
  ASSERT_EQ(run.code, 0) << run.output;
  for (const char* step : {"1", "2"}) {
    std::ifstream in(folder_ / "samples" / (std::string(step) + ".jsonl"));
    std::size_t lines = 0;
    for (std::string line; std::getline(in, line); ++lines) {
      const auto sample = nlohmann::json::parse(line);
      EXPECT_EQ(sample["step"], std::stoi(step));
      EXPECT_NE(sample["input"], "");
      EXPECT_TRUE(sample["score"].is_number());
    }
    EXPECT_EQ(lines, 16u) << "4 prompts with 4 responses each";
  }
  EXPECT_FALSE(fs::exists(folder_ / "validation"));  // no validation was asked for

  const Outcome validation = train(
      data + "trainer.val_only=True trainer.default_local_dir=" + (folder_ / "only").string());
  EXPECT_EQ(validation.code, 0) << validation.output;
  EXPECT_TRUE(fs::exists(folder_ / "validation" / "0.jsonl")) << validation.output;
  const auto lines = numbers(folder_ / "only");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("val-core/"), std::string::npos) << lines[0];
  EXPECT_EQ(lines[0].find("actor/"), std::string::npos) << lines[0];
}

// Where each token has its own advantage, the dump has it; and what the reward says besides its
// score.
TEST_F(TrainerTest, DumpsHaveTheAdvantagesOfTokensAndWhatTheRewardSaid) {
  const fs::path reward = folder_ / "reward.py";
  fs::create_directories(folder_);
  std::ofstream(reward) << "def compute_score(data_source, solution_str, ground_truth, "
                           "extra_info):\n    return {'score': len(solution_str) / 10, 'acc': "
                           "solution_str == ground_truth, 'letters': len(solution_str)}\n";
  const Outcome run = train(
      "algorithm.adv_estimator=gae algorithm.gamma=0.9 algorithm.lam=0.9 "
      "trainer.total_training_steps=1 trainer.rollout_data_dir=" +
      (folder_ / "dump").string() + " reward.custom_reward_function.path=" + reward.string());
  ASSERT_EQ(run.code, 0) << run.output;
  std::ifstream in(folder_ / "dump" / "1.jsonl");
  double sum = 0.0, squares = 0.0, tokens = 0.0;
  bool differ = false;
  for (std::string line; std::getline(in, line);) {
    const auto sample = nlohmann::json::parse(line);
    EXPECT_NEAR(sample["score"].get<double>(), sample["letters"].get<double>() / 10, 1e-6);
    EXPECT_TRUE(sample["acc"].is_number());
    ASSERT_EQ(sample["advantages"].size(), sample["tokens"].size());
    for (const auto& advantage : sample["advantages"]) {
      sum += advantage.get<double>();
      squares += advantage.get<double>() * advantage.get<double>();
      tokens += 1;
      differ = differ || advantage != sample["advantages"][0];
    }
  }
  ASSERT_GT(tokens, 16);
  EXPECT_TRUE(differ);
  EXPECT_NEAR(sum / tokens, 0.0, 1e-4);  // whitened, as the objective sees them
  EXPECT_NEAR(squares / (tokens - 1), 1.0, 1e-2);
}

TEST_F(TrainerTest, WrongInputIsAnErrorWithItsCauseAndANonZeroExit) {
  struct Case {
    const char* arguments;
    const char* told;
  };
  for (const Case& wrong :
       {Case{"actor_rollout_ref.model.path=/no/such/model", "/no/such/model"},
        Case{"data.train_batch_size=four", "data.train_batch_size"},
        Case{"data.train_batch_sise=4", "data.train_batch_size"},
        Case{"data.max_prompt_length=3", "max_prompt_length"},
        Case{"trainer.nnodes=3", "trainer.nnodes"},
        Case{"trainer.default_local_dir=/proc/no",
             "trainer.default_local_dir has to be a folder that can be written: making /proc/no"},
        Case{"trainer.resume_mode=resume_path trainer.resume_from_path=/no/global_step_1",
             "/no/global_step_1"}}) {
    const Outcome run = train(std::string("trainer.total_training_steps=1 ") + wrong.arguments);
    EXPECT_EQ(run.code, 1) << wrong.arguments << "\n" << run.output;
    EXPECT_NE(run.output.find("error: "), std::string::npos) << run.output;
    EXPECT_NE(run.output.find(wrong.told), std::string::npos) << wrong.arguments << "\n"
                                                              << run.output;
    EXPECT_EQ(processes(), "") << wrong.arguments;
  }
}

TEST_F(TrainerTest, LogsThatCannotBeWrittenAreFoundBeforeTheFirstStep) {
  for (const auto& [options, key] :
       {std::pair<std::string, const char*>{"trainer.rollout_data_dir=/proc/no/samples",
                                            "trainer.rollout_data_dir"},
        {"trainer.validation_data_dir=/proc/no/samples trainer.test_freq=1 data.val_batch_size=16",
         "validation_data_dir"}}) {
    const Outcome run = train("trainer.total_training_steps=2 " + options);
    EXPECT_EQ(run.code, 1) << options << "\n" << run.output;
    EXPECT_NE(run.output.find("error: "), std::string::npos) << run.output;
    EXPECT_NE(run.output.find("/proc/no/samples"), std::string::npos) << run.output;
    EXPECT_NE(run.output.find(key), std::string::npos) << run.output;
    EXPECT_EQ(run.output.find("step:1/"), std::string::npos) << run.output;
    EXPECT_FALSE(fs::exists(folder_ / "run" / "metrics.jsonl")) << options;
  }
}

TEST_F(TrainerTest, SamplesDoNotReplaceOthersInSilence) {
  const std::string shared = (folder_ / "shared").string();
  const Outcome one = train(
      "trainer.total_training_steps=2 trainer.test_freq=1 trainer.rollout_data_dir=" + shared +
      " trainer.validation_data_dir=" + shared + "/");
  EXPECT_EQ(one.code, 1) << one.output;
  EXPECT_NE(one.output.find("are one folder"), std::string::npos) << one.output;
  EXPECT_EQ(one.output.find("step:1/"), std::string::npos) << one.output;
  const std::string earlier = "has samples of an earlier run";
  const std::string options =
      "trainer.save_freq=1 trainer.rollout_data_dir=" + shared + " trainer.total_training_steps=";
  const Outcome first = train(options + "1");
  EXPECT_EQ(first.code, 0) << first.output;
  EXPECT_EQ(first.output.find(earlier), std::string::npos) << first.output;
  EXPECT_EQ(train(options + "2").output.find(earlier), std::string::npos) << "a run that goes on";
  const Outcome other =
      train(options + "1 trainer.default_local_dir=" + (folder_ / "other").string());
  EXPECT_EQ(other.code, 0) << other.output;
  EXPECT_NE(other.output.find(earlier), std::string::npos) << other.output;
}

TEST_F(TrainerTest, AFolderThatCannotBeWrittenIsNamedByItsVariable) {
  for (const auto& [variable, logger] :
       {std::pair("TENSORBOARD_DIR", "tensorboard"), {"WANDB_DIR", "wandb"}}) {
    const Outcome run =
        shell(std::string("exec env ") + variable + "=/proc/no " +
              train_command(std::string("trainer.total_training_steps=2 trainer.logger=[console,") +
                            logger + "]"));
    EXPECT_EQ(run.code, 1) << run.output;
    EXPECT_NE(run.output.find("error: "), std::string::npos) << run.output;
    EXPECT_NE(run.output.find("/proc/no"), std::string::npos) << run.output;
    EXPECT_NE(run.output.find(variable), std::string::npos) << run.output;
    EXPECT_EQ(run.output.find("step:1/"), std::string::npos) << run.output;
  }
}

// The actor's: warm-up of two steps, then level for half of what is left, then down in a line to a
// tenth. The critic's: down over the last fifth.
TEST_F(TrainerTest, LearningRatesFollowTheirSchedules) {
  const std::string optim = "actor_rollout_ref.actor.optim.";
  const Outcome run =
      train("trainer.total_training_steps=10 " + optim + "lr_scheduler_type=wsd " + optim +
            "lr_warmup_steps=2 " + optim + "lr_decay_ratio=0.5 " + optim + "min_lr_ratio=0.1 " +
            "algorithm.adv_estimator=gae critic.optim.lr=2e-3 critic.optim.lr_scheduler_type=wsd "
            "critic.optim.lr_decay_ratio=0.2");
  ASSERT_EQ(run.code, 0) << run.output;
  const std::vector<double> actor{0.5, 1, 1, 1, 1, 1, 1, 0.775, 0.55, 0.325};
  const std::vector<double> critic{1, 1, 1, 1, 1, 1, 1, 1, 1, 0.5};
  const std::vector<std::string> lines = numbers(folder_ / "run");
  ASSERT_EQ(lines.size(), 10u);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto data = nlohmann::json::parse(lines[i])["data"];
    EXPECT_NEAR(data["actor/lr"].get<double>(), 1e-3 * actor[i], 1e-12) << "step " << i + 1;
    EXPECT_NEAR(data["critic/lr"].get<double>(), 2e-3 * critic[i], 1e-12) << "step " << i + 1;
  }
}

TEST_F(TrainerTest, DamagedModelsAreNamed) {
  const fs::path damaged = folder_ / "damaged";
  fs::copy(model(), damaged);
  fs::resize_file(damaged / "model.safetensors", fs::file_size(damaged / "model.safetensors") / 2);
  const Outcome run =
      train("trainer.total_training_steps=1 actor_rollout_ref.model.path=" + damaged.string());
  EXPECT_EQ(run.code, 1) << run.output;
  EXPECT_NE(run.output.find("model.safetensors"), std::string::npos) << run.output;
}

TEST_F(TrainerTest, AnotherModelsTokenizerIsFoundBeforeTheFirstStep) {
  const fs::path mixed = folder_ / "mixed";
  fs::copy(model(), mixed);
  // The same alphabet with ids that begin further on.
  auto tokenizer = nlohmann::json::parse(read(mixed / "tokenizer.json"));
  for (auto& [token, id] : tokenizer["model"]["vocab"].items()) id = id.get<int>() + 1000;
  std::ofstream(mixed / "tokenizer.json") << tokenizer.dump();
  Outcome run =
      train("trainer.total_training_steps=1 actor_rollout_ref.model.path=" + mixed.string());
  EXPECT_EQ(run.code, 1) << run.output;
  EXPECT_NE(run.output.find("is outside the model's vocabulary"), std::string::npos) << run.output;
  EXPECT_EQ(run.output.find("policy: "), std::string::npos) << "told before workers start\n"
                                                            << run.output;
  run = train("trainer.total_training_steps=1 algorithm.adv_estimator=gae critic.model.path=" +
              mixed.string());
  EXPECT_EQ(run.code, 1) << run.output;
  EXPECT_NE(run.output.find("critic.model.path"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("in the critic " + mixed.string()), std::string::npos) << run.output;
  EXPECT_EQ(run.output.find("policy: "), std::string::npos) << "told before workers start\n"
                                                            << run.output;
}

TEST_F(TrainerTest, AGroupOfOneIsPointedOut) {
  const Outcome run = train("trainer.total_training_steps=1 actor_rollout_ref.rollout.n=1");
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_NE(run.output.find("actor_rollout_ref.rollout.n is 1"), std::string::npos) << run.output;
}

// A file system of 8 MiB in a mount namespace of the test's own, filled up after the first
// checkpoint.
TEST_F(TrainerTest, AFullDiskKeepsTheOldCheckpointAndIsAnErrorAtTheEnd) {
  if (shell("unshare --mount true").code != 0)
    GTEST_SKIP() << "mounting a small file system needs root";
  const std::string run_folder = (folder_ / "run").string();
  const std::string first =
      "(" + train_command("trainer.total_training_steps=1 trainer.save_freq=1") + ")";
  const std::string second =
      "(" + train_command("trainer.total_training_steps=2 trainer.save_freq=1") + ")";
  const Outcome run = shell("mkdir -p " + run_folder +
                            "; exec unshare --mount sh -c \"mount -t tmpfs -o size=8m tmpfs " +
                            run_folder + " && " + first + " && { dd if=/dev/zero of=" + run_folder +
                            "/filler bs=4k 2>/dev/null; truncate -s -64k " + run_folder +
                            "/filler; " + second + "; code=\\$?; cp -r " + run_folder + " " +
                            (folder_ / "seen").string() + "; exit \\$code; }\"");
  EXPECT_EQ(run.code, 1) << run.output;
  EXPECT_NE(run.output.find("checkpoint of step 2"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("No space left on device"), std::string::npos) << run.output;
  const auto latest = latest_whole_checkpoint(folder_ / "seen").value_or(std::nullopt);
  ASSERT_TRUE(latest.has_value()) << run.output;
  EXPECT_EQ(checkpoint_step(*latest), 1);
  EXPECT_FALSE(fs::exists(folder_ / "seen" / "global_step_2"));
}

// The reward fills the file system after the first checkpoint, and empties it after the second
// step.
TEST_F(TrainerTest, ADiskThatIsFullForAWhileCostsOneCheckpoint) {
  if (shell("unshare --mount true").code != 0)
    GTEST_SKIP() << "mounting a small file system needs root";
  const std::string run_folder = (folder_ / "run").string();
  const fs::path file = folder_ / "filling.py";
  fs::create_directories(folder_);
  std::ofstream(file)
      << "import os\n"
         "run = \"" +
             run_folder +
             "/\"\n"
             "full = False\n"
             "def fill():\n"
             "    with open(run + \"filler\", \"wb\", buffering=0) as out:\n"
             "        try:\n"
             "            while True: out.write(bytes(4096))\n"
             "        except OSError: pass\n"
             "        out.truncate(out.tell() - 65536)\n"
             "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
             "    global full\n"
             "    if not full and os.path.exists(run + \"global_step_1\"):\n"
             "        full = True\n"
             "        fill()\n"
             "    if os.path.exists(run + \"filler\") and \"\\\"step\\\":2,\" in open(run + "
             "\"metrics.jsonl\").read(): os.remove(run + \"filler\")\n"
             "    return float(len(solution_str))\n";
  const std::string command = train_command(
      "trainer.total_training_steps=4 trainer.save_freq=1 trainer.async_save=false "
      "reward.num_workers=1 custom_reward_function.path=" +
      file.string());
  const Outcome run = shell("mkdir -p " + run_folder +
                            "; exec unshare --mount sh -c \"mount -t tmpfs -o size=8m tmpfs " +
                            run_folder + " && (" + command + "); code=\\$?; cp -r " + run_folder +
                            " " + (folder_ / "seen").string() + "; exit \\$code\"");
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_NE(run.output.find("checkpoint of step 2: "), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("No space left on device; training continues"), std::string::npos)
      << run.output;
  EXPECT_EQ(numbers(folder_ / "seen").size(), 4u) << run.output;
  EXPECT_TRUE(verify_checkpoint(folder_ / "seen" / "global_step_1").ok());
  EXPECT_FALSE(fs::exists(folder_ / "seen" / "global_step_2"));
  for (const char* step : {"global_step_3", "global_step_4"})
    EXPECT_TRUE(verify_checkpoint(folder_ / "seen" / step).ok()) << step;
}

TEST_F(TrainerTest, AKilledPolicyWorkerIsTheErrorNotItsPeersBrokenConnections) {
  const std::string command = train_command(
      "actor_rollout_ref.rollout.n=8 trainer.n_gpus_per_node=2 trainer.save_freq=-1 "
      "trainer.total_training_steps=100000");
  std::future<Outcome> run =
      std::async(std::launch::async, [&] { return shell("exec " + command); });
  ASSERT_TRUE(support::eventually([&] { return numbers(folder_ / "run").size() >= 3; },
                                  std::chrono::seconds(100)));
  const pid_t policy = busiest_worker();
  ASSERT_GT(policy, 0);
  ::kill(policy, SIGKILL);
  const Outcome outcome = run.get();
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("error: actor died"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("(pid " + std::to_string(policy)), std::string::npos)
      << outcome.output;
}

TEST_F(TrainerTest, AnInterruptEndsEverything) {
  const pid_t pid =
      start(train_command("data.train_batch_size=16 actor_rollout_ref.rollout.n=8 "
                          "data.max_response_length=8 trainer.total_training_steps=100000"));
  ASSERT_TRUE(wait_for_step(pid, folder_ / "run", 1)) << read(folder_ / "output");
  ::kill(pid, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 0) << read(folder_ / "output");
  EXPECT_TRUE(all_end()) << processes();
}

}  // namespace
}  // namespace rl
