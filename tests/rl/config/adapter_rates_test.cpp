// The learning rates that runs have which set none.
#include "rl/config/adapter_rates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "rl/config/check.h"
#include "rl/config/stage_keys.h"

namespace rl {
namespace {

Config load_stage(const KeyTable& keys, std::vector<std::string> overrides) {
  const auto config = Config::load({.file = {}, .overrides = std::move(overrides), .keys = &keys});
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  return config.ok() ? *config : Config();
}

double rate(const KeyTable& keys, std::vector<std::string> overrides = {},
            const char* key = "optim.lr") {
  return load_stage(keys, std::move(overrides)).get_float(key).value_or(-1.0);
}

bool tells_of_adapter(const std::vector<std::string>& notes) {
  return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("ten times the default") != std::string::npos;
  });
}

constexpr const char* kActorRate = "actor_rollout_ref.actor.optim.lr";

TEST(DefaultRates, AreThoseOfTheStage) {
  EXPECT_EQ(rate(sft_keys()), 1e-5);
  EXPECT_EQ(rate(rm_keys()), 1e-5);
  EXPECT_EQ(rate(dpo_keys()), 1e-6);
  EXPECT_EQ(rate(kto_keys()), 1e-6);
  EXPECT_EQ(rate(train_keys(), {}, kActorRate), 1e-6);
  EXPECT_EQ(rate(train_keys(), {}, "critic.optim.lr"), 1e-5);
  EXPECT_EQ(rate(train_keys(), {}, "sft.lr"), 1e-5);
}

TEST(DefaultRates, AreTenTimesAsHighForAnAdapter) {
  for (const char* adapter : {"model.lora_rank=8", "model.lora_adapter_path=DIR",
                              "model.lora.rank=8", "model.lora_rank=${oc.env:NO_SUCH_RANK,8}"}) {
    EXPECT_EQ(rate(sft_keys(), {adapter}), 1e-4) << adapter;
    EXPECT_EQ(rate(dpo_keys(), {adapter}), 1e-5) << adapter;
    EXPECT_EQ(rate(kto_keys(), {adapter}), 1e-5) << adapter;
  }
  const std::string rl_adapter = "actor_rollout_ref.model.lora_rank=8";
  EXPECT_EQ(rate(train_keys(), {rl_adapter}, kActorRate), 1e-5);
  EXPECT_EQ(rate(train_keys(), {rl_adapter}, "sft.lr"), 1e-4);
  EXPECT_EQ(rate(train_keys(), {rl_adapter}, "critic.optim.lr"), 1e-5) << "it has no adapter";
  // No adapter: nothing changes.
  EXPECT_EQ(rate(sft_keys(), {"model.lora_rank=0", "model.lora_adapter_path=null"}), 1e-5);
  EXPECT_EQ(rate(sft_keys(), {"model.lora_adapter_path=''"}), 1e-5);
}

TEST(DefaultRates, AreNotThoseThatTheUserSets) {
  EXPECT_EQ(rate(sft_keys(), {"model.lora_rank=8", "optim.lr=1e-05"}), 1e-5)
      << "the default, said by the user";
  EXPECT_EQ(rate(sft_keys(), {"model.lora_rank=8", "optim.lr=null"}), 1e-4) << "nothing said";
  const Config verl = load_stage(
      train_keys(), {"actor_rollout_ref.model.lora_rank=64", std::string(kActorRate) + "=1e-6"});
  EXPECT_EQ(*verl.get_float(kActorRate), 1e-6);
  EXPECT_FALSE(tells_of_adapter(verl.notes()));
}

TEST(DefaultRates, AreToldWhereTheyAreChosen) {
  const Config config = load_stage(sft_keys(), {"model.lora_rank=8"});
  EXPECT_NE(std::find(config.notes().begin(), config.notes().end(),
                      "optim.lr is not set: 0.0001, ten times the default of 1e-05, since a LoRA "
                      "adapter is trained"),
            config.notes().end());
  EXPECT_EQ(config.origin("optim.lr"), "from the defaults");
  EXPECT_NE(config.to_yaml().find("lr: 0.0001"), std::string::npos) << config.to_yaml();
  EXPECT_FALSE(tells_of_adapter(load_stage(sft_keys(), {}).notes()));
  // What reads the configuration that is printed has the same rate.
  const auto check = check_config(
      {.file = {}, .overrides = {"model.path=x", "model.lora_rank=8"}, .keys = &sft_keys()});
  ASSERT_TRUE(check.ok());
  EXPECT_TRUE(check->passes());
  EXPECT_TRUE(tells_of_adapter(check->notes));
  // Of a warm start only where there is one.
  const auto notes_of = [](std::vector<std::string> overrides) {
    std::string all;
    const Config loaded = load_stage(train_keys(), std::move(overrides));
    for (const std::string& note : loaded.notes()) all += note;
    return all;
  };
  const std::string adapter = "actor_rollout_ref.model.lora_rank=8";
  EXPECT_EQ(notes_of({adapter}).find("sft.lr"), std::string::npos);
  EXPECT_NE(notes_of({adapter, "sft.steps=3"}).find("sft.lr is not set: 0.0001"),
            std::string::npos);
}

TEST(DefaultRates, AreWhatOtherKeysReferTo) {
  const Config config = load_stage(sft_keys(), {"model.lora_rank=8", "optim.min_lr=${optim.lr}"});
  EXPECT_EQ(*config.get_float("optim.min_lr"), 1e-4);
}

}  // namespace
}  // namespace rl
