#include "rl/config/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "rl/config/keys.h"

namespace rl {
namespace {

using runtime::ErrorCode;

runtime::Result<Config> load(std::vector<std::string> overrides) {
  return Config::load({std::nullopt, std::move(overrides)});
}

std::string complaint(std::vector<std::string> overrides) {
  const auto config = load(std::move(overrides));
  return config.ok() ? "" : config.status().message();
}

bool has_note(const Config& config, std::string_view part) {
  for (const std::string& note : config.notes()) {
    if (note.find(part) != std::string::npos) return true;
  }
  return false;
}

/// A YAML file that is gone after the test.
class YamlFile {
 public:
  explicit YamlFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("starling_config_" + std::to_string(getpid()) + ".yaml")) {
    std::ofstream(path_) << text;
  }
  ~YamlFile() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(Config, HasTheDefaults) {
  const auto config = load({});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(*config->get_int("data.train_batch_size"), 1024);
  EXPECT_EQ(*config->get_float("actor_rollout_ref.actor.optim.lr"), 1e-6);
  EXPECT_EQ(*config->get_floats("actor_rollout_ref.actor.optim.betas"),
            (std::vector<double>{0.9, 0.999}));
  EXPECT_EQ(*config->get_string("actor_rollout_ref.actor.kl_loss_type"), "low_var_kl");
  EXPECT_EQ(*config->get_bool("trainer.val_before_train"), true);
  EXPECT_EQ(*config->find_int("trainer.total_training_steps"), std::nullopt);
  EXPECT_EQ(config->get_int("trainer.total_training_steps").status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(*config->get_string("trainer.default_local_dir"), "checkpoints/starling/grpo");
  EXPECT_EQ(*config->get_bool("actor_rollout_ref.ref.use_torch_compile"),
            true);  // by ${oc.select:...}
}

TEST(Config, KnowsEveryKeyOfTheTable) {
  for (const KeyInfo& row : known_keys()) {
    EXPECT_EQ(find_key(row.key), &row) << row.key << " is in the table twice";
    EXPECT_EQ(canonical_key(row.key), row.key) << row.key << " is also an alias";
    EXPECT_TRUE(row.support == KeySupport::kSupported || !row.note.empty())
        << row.key << ": nothing says why it is not used";
  }
  for (const KeyAlias& alias : key_aliases()) {
    EXPECT_TRUE(alias.name.ends_with('.') || find_key(alias.name) != nullptr) << alias.old_name;
  }
}

TEST(Config, LaterSourcesWinAndRememberWhereTheyAre) {
  const YamlFile file(
      "data:\n  train_batch_size: 16\n  seed: 5\nactor_rollout_ref.actor.optim.lr: 1e-4\n");
  const auto config =
      Config::load({file.path(), {"data.train_batch_size=8", "data.train_batch_size=4"}});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(*config->get_int("data.train_batch_size"), 4);
  EXPECT_EQ(*config->get_int("data.seed"), 5);
  EXPECT_EQ(*config->get_float("actor_rollout_ref.actor.optim.lr"), 1e-4);
  EXPECT_EQ(config->origin("data.train_batch_size"), "from the command line");
  EXPECT_EQ(config->origin("data.seed"), "from " + file.path().string() + ":3");
  EXPECT_EQ(config->origin("data.shuffle"), "from the defaults");
  EXPECT_EQ(load({"data.train_batch_size=null"})->origin("data.train_batch_size"),
            "from the defaults");
  EXPECT_TRUE(config->is_set("data.seed"));
  EXPECT_TRUE(config->is_set("data"));
  EXPECT_FALSE(config->is_set("data.shuffle"));
  EXPECT_FALSE(config->is_set("trainer"));
}

TEST(Config, ADefaultThatIsAnotherKeysValueNamesThatKey) {
  const auto config = load(
      {"actor_rollout_ref.actor.clip_ratio=0.1", "actor_rollout_ref.actor.ppo_mini_batch_size=8"});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(config->origin("actor_rollout_ref.actor.clip_ratio_low"),
            "as actor_rollout_ref.actor.clip_ratio, from the command line");
  EXPECT_EQ(config->origin("critic.ppo_mini_batch_size"),
            "as actor_rollout_ref.actor.ppo_mini_batch_size, from the command line");
  EXPECT_EQ(config->origin("critic.ppo_epochs"), "from the defaults");
}

TEST(Config, AnotherTreeKeepsTheOrigins) {
  const auto config = load({"reward.timeout=5"});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  auto tree = config->to_json();
  tree["reward"]["retries"] = 7;
  const Config changed = config->with_tree(std::move(tree));
  EXPECT_EQ(*changed.get_int("reward.retries"), 7);
  EXPECT_EQ(changed.origin("reward.timeout"), "from the command line");
  EXPECT_TRUE(changed.is_set("reward.timeout"));
}

TEST(Config, WhatVerlsUserMayCountOnIsNoted) {
  const std::string correction = "algorithm.rollout_correction.";
  const auto config =
      load({"trainer.critic_warmup=3", correction + "rollout_is=token",
            "reward_model.overlong_buffer.enable=true", "reward_model.overlong_buffer.len=4"});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  const auto begins = [](const Config& of, const std::string& begin) {
    return std::any_of(of.notes().begin(), of.notes().end(),
                       [&](const std::string& note) { return note.starts_with(begin); });
  };
  const std::vector<std::string> expected = {
      "without effect: trainer.critic_warmup", "without effect: " + correction + "rollout_is (",
      "reward.reward_kwargs.overlong_buffer_cfg.enable: long responses"};
  for (const std::string& note : expected) EXPECT_TRUE(begins(*config, note)) << note;
  const auto meant =
      load({"trainer.critic_warmup=3", "algorithm.adv_estimator=gae",
            correction + "rollout_is=token", correction + "bypass_mode=true",
            correction + "loss_type=reinforce", "reward_model.reward_manager=dapo",
            "reward_model.overlong_buffer.enable=true", "reward_model.overlong_buffer.len=4"});
  ASSERT_TRUE(meant.ok()) << meant.status().to_string();
  for (const std::string& note : expected) EXPECT_FALSE(begins(*meant, note)) << note;
}

TEST(Config, KeysOfPartsThatAreOffAreNoted) {
  const auto config = load({"sample_store.max_age=4", "sample_store.capacity=64",
                            "algorithm.kl_ctrl.kl_coef=0.1", "reward.http.batch_size=4",
                            "trainer.early_stop.patience=3", "distillation.enabled=false"});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_TRUE(has_note(*config,
                       "without effect: sample_store.capacity, sample_store.max_age "
                       "(sample_store.enable is not true)"));
  EXPECT_TRUE(has_note(
      *config,
      "without effect: algorithm.kl_ctrl.kl_coef (algorithm.use_kl_in_reward is not true)"));
  EXPECT_TRUE(
      has_note(*config, "without effect: reward.http.batch_size (reward.http.url is not set)"));
  EXPECT_TRUE(has_note(
      *config,
      "without effect: trainer.early_stop.patience (trainer.early_stop.metric is not set)"));
  EXPECT_FALSE(has_note(*config, "distillation"));
  const auto on =
      load({"sample_store.max_age=4", "sample_store.enable=true", "algorithm.kl_ctrl.kl_coef=0.1",
            "algorithm.use_kl_in_reward=true", "reward.http.batch_size=4",
            "reward.http.url=http://localhost:1", "trainer.early_stop.patience=3",
            "trainer.early_stop.metric=x", "~distillation.enabled"});
  ASSERT_TRUE(on.ok()) << on.status().to_string();
  for (const char* part : {"sample_store", "kl_ctrl", "http", "early_stop", "distillation"})
    EXPECT_FALSE(has_note(*on, std::string("without effect: ") + part)) << part;

  const auto sft =
      Config::load({std::nullopt, {"distillation.weight=0.25"}, find_key_table("sft")});
  ASSERT_TRUE(sft.ok()) << sft.status().to_string();
  EXPECT_TRUE(
      has_note(*sft, "without effect: distillation.weight (distillation.teacher.path is not set)"));
}

TEST(Config, WrongTypesNameTheKeyTheValueAndTheOrigin) {
  EXPECT_EQ(
      complaint({"data.train_batch_size=four"}),
      "data.train_batch_size: expected an integer, got the string 'four' (from the command line)");
  EXPECT_EQ(
      complaint({"data.train_batch_size=3.5"}),
      "data.train_batch_size: expected an integer, got the number 3.5 (from the command line)");
  EXPECT_EQ(*load({"data.train_batch_size=null"})->get_int("data.train_batch_size"),
            1024);  // null stands for the default
  EXPECT_EQ(
      complaint({"actor_rollout_ref.actor.optim.lr=True"}),
      "actor_rollout_ref.actor.optim.lr: expected a number, got true (from the command line)");
  EXPECT_NE(complaint({"actor_rollout_ref.actor.optim.lr=nan"})
                .find("actor_rollout_ref.actor.optim.lr: expected a finite number"),
            std::string::npos);
  EXPECT_NE(complaint({"reward.reward_kwargs.overlong_buffer_cfg.penalty_factor=inf"})
                .find("penalty_factor: expected a finite number"),
            std::string::npos);
  EXPECT_EQ(complaint({"data.shuffle=1"}),
            "data.shuffle: expected true or false, got the number 1 (from the command line)");
  EXPECT_EQ(complaint({"data.train_files=[1]"}),
            "data.train_files: expected a string or a list of strings, got a list (from the "
            "command line)");
  EXPECT_EQ(complaint({"data.truncation=midle"}),
            "data.truncation: expected error, left, right or middle, got the string 'midle' (from "
            "the command line)");
  EXPECT_EQ(*load({"data.train_batch_size=1e2"})->get_int("data.train_batch_size"), 100);
  EXPECT_EQ(
      *load({"actor_rollout_ref.actor.optim.lr=1"})->get_float("actor_rollout_ref.actor.optim.lr"),
      1.0);
}

TEST(Config, TextsMayLookLikeSomethingElse) {
  EXPECT_EQ(*load({"trainer.experiment_name=7"})->get_string("trainer.experiment_name"), "7");
  EXPECT_EQ(*load({"trainer.experiment_name=true"})->get_string("trainer.experiment_name"), "true");
  EXPECT_NE(complaint({"trainer.experiment_name=[1]"}), "");
}

TEST(Config, GettersCheckTypesOfUndeclaredKeys) {
  const auto config = load({"+mine.x=abc", "+mine.list=[1,a]"});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->get_int("mine.x").status().message(),
            "mine.x: expected an integer, got the string 'abc' (from the command line)");
  EXPECT_EQ(config->get_list("mine.list")->dump(), R"([1,"a"])");
  EXPECT_EQ(config->get_list("mine.x").status().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(has_note(*config, "without effect: mine.x (unknown key"));
}

TEST(Config, UnknownKeysOfferTheNearest) {
  EXPECT_EQ(complaint({"data.train_batch_siz=4"}),
            "override 'data.train_batch_siz=4': unknown key 'data.train_batch_siz': did you mean "
            "'data.train_batch_size'?");
  EXPECT_NE(complaint({"trainer.train_batch_size=4"}).find("'data.train_batch_size'"),
            std::string::npos);
  EXPECT_NE(complaint({"lr=4"}).find("'actor_rollout_ref.actor.optim.lr'"), std::string::npos);
  EXPECT_NE(complaint({"data={train_batch_size:1,shufle:true}"}).find("'data.shuffle'"),
            std::string::npos);
  const std::string both =
      complaint({"data.train_batch_siz=4", "trainer.total_epoch=x", "trainer.totl_epochs=2"});
  EXPECT_NE(both.find("'data.train_batch_siz'"), std::string::npos) << both;
  EXPECT_NE(both.find("'trainer.totl_epochs'"), std::string::npos)
      << both << ": all mistakes at once";
  EXPECT_EQ(complaint({"zzzzqqqq=1"}),
            "override 'zzzzqqqq=1': unknown key 'zzzzqqqq': write +zzzzqqqq=... to add a custom "
            "key");
  EXPECT_EQ(complaint({"data=1"}), "override 'data=1': 'data' is a section: set a key below it");
  const YamlFile file("trainer:\n  nnodes: 2\n  n_gpu_per_node: 1\n");
  const auto config = Config::load({file.path(), {}});
  EXPECT_EQ(
      config.status().message(),
      file.path().string() +
          ":3: unknown key 'trainer.n_gpu_per_node': did you mean 'trainer.n_gpus_per_node'?");
}

TEST(Config, AddsAndDeletes) {
  EXPECT_EQ(complaint({"data.train_batch_size=2", "+data.train_batch_size=4"}),
            "override '+data.train_batch_size=4': 'data.train_batch_size' already has the value 2: "
            "write data.train_batch_size=... to "
            "change it, or "
            "++data.train_batch_size=... for either");
  EXPECT_EQ(*load({"+data.train_batch_size=4"})->get_int("data.train_batch_size"),
            4);  // a default of ours may be none in the script's release
  EXPECT_EQ(*load({"++data.train_batch_size=4"})->get_int("data.train_batch_size"), 4);
  EXPECT_EQ(*load({"+data.seed=4"})->get_int("data.seed"),
            4);  // null counts as no value, as in Hydra
  EXPECT_EQ(*load({"+data.apply_chat_template_kwargs.enable_thinking=false"})
                 ->get_bool("data.apply_chat_template_kwargs.enable_thinking"),
            false);
  EXPECT_EQ(
      *load({"data.apply_chat_template_kwargs={a: 1}", "+data.apply_chat_template_kwargs={b: 2}"})
           ->get_int("data.apply_chat_template_kwargs.a"),
      1);
  // None is an argument of a user's function as any other, also by verl's older name.
  for (const char* key : {"reward.custom_reward_function.reward_kwargs.a",
                          "custom_reward_function.reward_kwargs.a"}) {
    const auto with_null = load({std::string("+") + key + "=null"});
    ASSERT_TRUE(with_null.ok()) << with_null.status().to_string();
    const auto* value = with_null->find("reward.custom_reward_function.reward_kwargs.a");
    ASSERT_NE(value, nullptr) << key;
    EXPECT_TRUE(value->is_null());
  }
  const auto deleted = load({"~data.seed"});
  EXPECT_EQ(deleted->get_int("data.seed").status().message(),
            "data.seed: has no value (from the command line, which deleted it): set data.seed=...");
  EXPECT_TRUE(load({"~data.shuffle=true"}).ok());
  EXPECT_EQ(complaint({"~data.shuffle=false"}),
            "override '~data.shuffle=false': 'data.shuffle' is true, not false: not deleted");
  EXPECT_NE(complaint({"~data.shufle"}).find("'data.shuffle'"), std::string::npos);
  EXPECT_EQ(load({"~actor_rollout_ref.actor.policy_loss"})
                ->find("actor_rollout_ref.actor.policy_loss.loss_mode"),
            nullptr);
}

TEST(Config, ResolvesReferences) {
  const auto config =
      load({"trainer.project_name=p",
            "trainer.experiment_name='${trainer.project_name}-${data.train_batch_size}'",
            "actor_rollout_ref.actor.ppo_mini_batch_size=${data.train_batch_size}",
            "++mine={a: '${.b}', b: 3, c: '${oc.env:STARLING_NOT_SET,x}'}"});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(*config->get_string("trainer.experiment_name"), "p-1024");
  EXPECT_EQ(*config->get_string("trainer.default_local_dir"), "checkpoints/p/p-1024");
  EXPECT_EQ(*config->get_int("actor_rollout_ref.actor.ppo_mini_batch_size"), 1024);
  EXPECT_EQ(*config->get_int("mine.a"), 3);
  EXPECT_EQ(*config->get_string("mine.c"), "x");
  EXPECT_NE(complaint({"trainer.project_name=${trainer.experimen_name}"})
                .find("did you mean 'trainer.experiment_name'?"),
            std::string::npos);
  EXPECT_NE(complaint({"trainer.project_name=${trainer.experiment_name}",
                       "trainer.experiment_name=${trainer.project_name}"})
                .find("lead back"),
            std::string::npos);
  EXPECT_NE(complaint({"trainer.project_name=${now:%Y}"}).find("'now' is not supported"),
            std::string::npos);
  EXPECT_NE(complaint({"+a.a='${b.b}${b.b}'", "+b.b=${a}"}).find("lead back"), std::string::npos);
}

TEST(Config, ClipRatioStandsForBothSides) {
  const auto config = load(
      {"actor_rollout_ref.actor.clip_ratio=0.1", "actor_rollout_ref.actor.clip_ratio_high=0.3"});
  EXPECT_EQ(*config->get_float("actor_rollout_ref.actor.clip_ratio_low"), 0.1);
  EXPECT_EQ(*config->get_float("actor_rollout_ref.actor.clip_ratio_high"), 0.3);
}

TEST(Config, OlderNamesMeanTheCurrentOnes) {
  const auto config =
      load({"trainer.max_steps=10", "num_train_epochs=2", "reward_model.enable=False",
            "actor_rollout_ref.actor.optim.warmup_style=null"});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(*config->get_int("trainer.total_training_steps"), 10);
  EXPECT_EQ(*config->get_int("trainer.total_epochs"), 2);
  EXPECT_TRUE(config->is_set("trainer.max_steps"));
  EXPECT_TRUE(has_note(*config, "trainer.max_steps means trainer.total_training_steps"));
  EXPECT_EQ(*config->get_string("actor_rollout_ref.actor.optim.lr_scheduler_type"), "constant");
}

constexpr const char* kOlderRows =
    "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size";
constexpr const char* kRows = "actor_rollout_ref.actor.ulysses_sequence_parallel_size";

// verl writes a configuration with both names, of which a script sets one.
TEST(Config, OfTwoNamesInAFileTheValueThatIsNotTheDefaultCounts) {
  const auto rows = [](int older, int current, bool older_first) {
    const std::string first = std::string(kOlderRows) + ": " + std::to_string(older) + "\n";
    const std::string second = std::string(kRows) + ": " + std::to_string(current) + "\n";
    const YamlFile file(older_first ? first + second : second + first);
    const auto config = Config::load({file.path(), {}});
    return config.ok() ? config->get_int(kRows) : config.status();
  };
  for (const bool older_first : {true, false}) {
    EXPECT_EQ(rows(2, 1, older_first).value_or(0), 2) << older_first;
    EXPECT_EQ(rows(1, 2, older_first).value_or(0), 2) << older_first;
    EXPECT_EQ(rows(2, 2, older_first).value_or(0), 2) << older_first;
    const auto both = rows(2, 4, older_first);
    EXPECT_EQ(both.status().code(), ErrorCode::kInvalidArgument);
    for (const char* name : {kOlderRows, kRows})
      EXPECT_NE(both.status().message().find(std::string(name) + "="), std::string::npos)
          << both.status().message();
  }
}

TEST(Config, ACommandLineGoesBeforeAFileByEachOfAKeysNames) {
  for (const char* in_file : {kOlderRows, kRows}) {
    const YamlFile file(std::string(in_file) + ": 2\n");
    for (const char* name : {kOlderRows, kRows}) {
      for (const int rows : {1, 4}) {
        const auto config =
            Config::load({file.path(), {std::string(name) + "=" + std::to_string(rows)}});
        ASSERT_TRUE(config.ok()) << config.status().to_string();
        EXPECT_EQ(*config->get_int(kRows), rows) << in_file << ", then " << name;
      }
    }
  }
  const YamlFile both(std::string(kOlderRows) + ": 2\n" + kRows + ": 4\n");
  EXPECT_EQ(Config::load({both.path(), {std::string(kRows) + "=1"}})->get_int(kRows).value_or(0), 1)
      << "what contradicts itself in the file is behind";
}

TEST(Config, OnACommandLineTheLaterNameCountsAndThatIsNoted) {
  const auto config = load({"trainer.max_steps=10", "trainer.total_training_steps=4"});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(*config->get_int("trainer.total_training_steps"), 4);
  EXPECT_TRUE(has_note(*config, "trainer.total_training_steps=4 replaces trainer.max_steps=10"));
  EXPECT_FALSE(has_note(*load({"trainer.max_steps=10", "trainer.max_steps=4"}), "replaces"));
}

TEST(Config, ASectionsOlderNameIsComparedKeyByKeyAndAReferenceIsNot) {
  const YamlFile file(
      "critic:\n  optim:\n    clip_grad: ${critic.grad_clip}\n  grad_clip: 0.5\n"
      "  fsdp: {zero_level: auto}\n  model:\n    fsdp_config: {zero_level: 2}\n");
  const auto config = Config::load({file.path(), {}});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(*config->get_float("critic.grad_clip"), 0.5);
  EXPECT_EQ(*config->get_int("critic.fsdp.zero_level"), 2);
}

TEST(Config, SaysWhatHasNoEffectOnce) {
  const auto config = load({"actor_rollout_ref.actor.fsdp_config.entropy_checkpointing=True",
                            "actor_rollout_ref.actor.entropy_from_logits_with_chunking=True",
                            "actor_rollout_ref.rollout.name=sglang",
                            "actor_rollout_ref.rollout.enforce_eager=False"});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_TRUE(
      has_note(*config,
               "without effect: actor_rollout_ref.actor.entropy_from_logits_with_chunking, "
               "actor_rollout_ref.actor.fsdp_config.entropy_checkpointing (a memory setting"));
  EXPECT_TRUE(has_note(
      *config,
      "actor_rollout_ref.rollout.name=sglang: vllm, sglang and hf all mean Starling's own engine"));
  EXPECT_TRUE(has_note(*config, "algorithm.adv_estimator is not set: grpo"));
  EXPECT_FALSE(has_note(*load({"trainer.logger=[console,wandb]"}), "trainer.logger"));
  EXPECT_FALSE(has_note(*config, "enforce_eager"));  // the default: nothing to say
}

TEST(Config, RefusesWhatWouldChangeTheResultAllAtOnce) {
  const auto config =
      load({"algorithm.adv_estimator=grpo_of_ones_own", "actor_rollout_ref.actor.shuffle=true",
            "actor_rollout_ref.rollout.multi_turn.enable=False"});
  EXPECT_EQ(config.status().code(), ErrorCode::kUnimplemented);
  EXPECT_EQ(config.status().message(),
            "actor_rollout_ref.actor.shuffle: true is refused: mini-batches are taken in order "
            "(from the command line)\n"
            "algorithm.adv_estimator: expected codapo, disco, gae, gdpo, gpg, grpo, grpo_passk, "
            "grpo_vectorized, opo, optimal_token_baseline, reinforce_plus_plus, "
            "reinforce_plus_plus_baseline, "
            "remax, rloo, rloo_vectorized or tir_optimal_token_baseline, got the string "
            "'grpo_of_ones_own': a custom program may register others: "
            "docs/guide/algorithms.md (from the command line)");
}

TEST(Config, RunsTheToyCommandOfArticles) {
  EXPECT_EQ(complaint({"data.dataset_name=toy", "data.train_batch_size=4",
                       "actor_rollout_ref.model.path=DIR", "actor_rollout_ref.rollout.name=sglang",
                       "trainer.max_steps=10", "trainer.log_interval=1"}),
            "");
}

TEST(Config, PrintsYamlThatReadsBackEqual) {
  const auto config = load({"trainer.project_name='on'", "trainer.experiment_name=\"a: b # c\"",
                            "data.train_files=[x,'1','null']", "data.seed=7", "sft.lr=1e-05"});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  const YamlFile file(config->to_yaml());
  const auto again = Config::load({file.path(), {}});
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  for (const char* key : {"trainer", "data", "sft", "algorithm"})
    EXPECT_EQ(*again->find(key), *config->find(key)) << key;
  EXPECT_EQ(*Config::deserialize(config->serialize())->get_string("trainer.project_name"), "on");
}

TEST(Config, AWorkersKnowsWhatWasSet) {
  const auto config =
      load({"actor_rollout_ref.actor.fsdp_config.dtype=float32", "data.seed=null", "sft.lr=1e-5"});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  const auto workers = Config::deserialize(config->serialize());
  ASSERT_TRUE(workers.ok()) << workers.status().to_string();
  EXPECT_EQ(workers->to_json(), config->to_json());
  for (const char* key : {"actor_rollout_ref.actor.fsdp_config.dtype", "data.seed", "sft.lr",
                          "actor_rollout_ref.ref.fsdp_config.dtype", "data.train_batch_size"})
    EXPECT_EQ(workers->is_set(key), config->is_set(key)) << key;
  EXPECT_TRUE(workers->is_set("actor_rollout_ref.actor.fsdp_config.dtype"));
  EXPECT_EQ(workers->origin("sft.lr"), "from the driver");
  for (const char* text : {"", "[]", "{}", "{\"values\": 1, \"set\": []}", "{\"values\": {}"})
    EXPECT_FALSE(Config::deserialize(text).ok()) << text;
}

TEST(Config, KeysAreNoDeeperThanFiles) {
  std::string key;
  for (int i = 0; i < 20'000; ++i) key += "a.";
  const YamlFile file("? transfer_queue." + key + "b\n: 1\n");
  for (const auto& config : {load({"+" + key + "b=1"}), load({"transfer_queue." + key + "b=1"}),
                             Config::load({file.path(), {}})}) {
    ASSERT_FALSE(config.ok());
    EXPECT_NE(config.status().message().find("nested deeper than 64"), std::string::npos);
  }
}

TEST(Config, ReaderKeepsTheFirstFailure) {
  const auto config = load({"+mine.x=abc"});
  ConfigReader read(*config);
  EXPECT_EQ(read.get_int("data.train_batch_size"), 1024);
  EXPECT_TRUE(read.status().ok());
  EXPECT_EQ(read.get_int("mine.x"), 0);
  EXPECT_EQ(read.get_int("mine.y"), 0);
  EXPECT_NE(read.status().message().find("mine.x"), std::string::npos);
}

}  // namespace
}  // namespace rl
