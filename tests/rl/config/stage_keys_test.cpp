#include "rl/config/stage_keys.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "rl/config/check.h"
#include "rl/config/key_tables.h"

namespace rl {
namespace {

runtime::Result<Config> load_sft(std::vector<std::string> overrides) {
  return Config::load({.file = {}, .overrides = std::move(overrides), .keys = &sft_keys()});
}

TEST(StageKeys, HaveOneRowEachADescriptionAndDefaultsThatPass) {
  for (const KeyTable* table : {&sft_keys(), &dpo_keys(), &kto_keys(), &rm_keys()}) {
    EXPECT_EQ(find_key_table(table->command()), table);
    for (const KeyInfo& row : table->rows()) {
      EXPECT_EQ(table->find(row.key), &row) << row.key;
      EXPECT_EQ(table->canonical(row.key), row.key) << row.key << " is also an alias";
      if (row.support == KeySupport::kSupported) {
        EXPECT_FALSE(table->description(row.key).empty()) << row.key;
      } else {
        EXPECT_FALSE(row.note.empty()) << row.key;
      }
    }
    for (const KeyAlias& alias : table->aliases())
      EXPECT_NE(table->find(alias.name), nullptr) << alias.old_name;
    const auto defaults = Config::load({.file = {}, .overrides = {}, .keys = table});
    ASSERT_TRUE(defaults.ok()) << defaults.status().to_string();
  }
}

TEST(StageKeys, PreferencesTakeTheirOwnLossesOnly) {
  const auto loads = [](const KeyTable& keys, const std::string& key) {
    return Config::load({.file = {}, .overrides = {key}, .keys = &keys}).ok();
  };
  EXPECT_TRUE(loads(dpo_keys(), "preference.loss=simpo"));
  EXPECT_FALSE(loads(dpo_keys(), "preference.loss=kto"));
  EXPECT_FALSE(loads(rm_keys(), "preference.beta=0.1"));
  EXPECT_FALSE(loads(kto_keys(), "preference.label_smoothing=0.1"));
  EXPECT_FALSE(loads(sft_keys(), "preference.loss=sigmoid"));
}

TEST(StageKeys, ACommandsOwnRowsWinOverTheSharedOnes) {
  EXPECT_EQ(*load_sft({})->get_string("trainer.default_local_dir"), "checkpoints/starling/sft");
}

TEST(StageKeys, EachCommandKnowsItsOwn) {
  EXPECT_EQ(find_key_table("sft"), &sft_keys());
  EXPECT_EQ(find_key_table("train"), &train_keys());
  EXPECT_EQ(find_key_table("stft"), nullptr);
  EXPECT_TRUE(load_sft({"optim.lr=1e-5"}).ok());
  EXPECT_FALSE(Config::load({.file = {}, .overrides = {"optim.lr=1e-5"}}).ok());
  const auto foreign = load_sft({"actor_rollout_ref.actor.optim.lr=1e-5"});
  ASSERT_FALSE(foreign.ok());
  EXPECT_NE(foreign.status().message().find("optim.lr"), std::string::npos)
      << foreign.status().message();
}

TEST(StageKeys, OlderNamesOfVerlStandForTheirSuccessors) {
  const auto config = load_sft({"model.partial_pretrain=x", "optim.warmup_style=cosine",
                                "data.multiturn.messages_key=turns", "trainer.max_steps=3"});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(*config->get_string("model.path"), "x");
  EXPECT_EQ(*config->get_string("optim.lr_scheduler_type"), "cosine");
  EXPECT_EQ(*config->get_string("data.messages_key"), "turns");
  EXPECT_EQ(*config->get_int("trainer.total_training_steps"), 3);
  EXPECT_TRUE(config->is_set("model.partial_pretrain"));
}

TEST(StageKeys, HydrasChoicesOfBackEndsChangeNothing) {
  const auto config = load_sft({"engine=fsdp", "optim=megatron", "model=hf_model",
                                "optim.lr_scheduler=cosine", "optim.warmup_steps_ratio=0.1",
                                "optim.betas=\"[0.9,0.95]\"", "optim.optimizer=muon"});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(*config->get_float("optim.lr_warmup_steps_ratio"), 0.1);
  EXPECT_EQ(*config->get_floats("optim.betas"), (std::vector<double>{0.9, 0.95}));
  const auto& notes = config->notes();
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.starts_with("without effect: engine=fsdp (");
  }));
  for (const char* wrong : {"engine=fspd", "model=llama", "data=x", "trainer=fsdp"})
    EXPECT_NE(load_sft({wrong}).status().message().find("is a section"), std::string::npos)
        << wrong;
}

TEST(StageKeys, IntervalsAreStepsOrEpochs) {
  EXPECT_TRUE(load_sft({"trainer.save_freq=after_each_epoch"}).ok());
  EXPECT_TRUE(load_sft({"trainer.save_freq=5"}).ok());
  EXPECT_FALSE(load_sft({"trainer.save_freq=daily"}).ok());
}

}  // namespace
}  // namespace rl
