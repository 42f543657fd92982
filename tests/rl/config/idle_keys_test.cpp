// Idle keys of one switch. Those of a whole configuration: tests/rl/config/config_test.cpp.
#include "rl/config/idle_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "rl/config/stage_keys.h"

namespace rl {
namespace {

using IdleLines = std::vector<std::string>;

// As if the user had set `set_keys` alone, whatever else there is.
IdleLines idle_notes(const IdleLines& set_keys, IdleLines overrides = {},
                     const KeyTable& keys = train_keys()) {
  const auto config = Config::load({.file = {}, .overrides = std::move(overrides), .keys = &keys});
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  return config.ok() ? idle_key_notes(*config, keys, set_keys) : IdleLines{"no configuration"};
}

TEST(IdleKeys, AreThoseThatWereSetAndNotTheSwitchItself) {
  EXPECT_EQ(idle_notes({}), IdleLines());
  EXPECT_EQ(idle_notes({"sample_store.enable"}), IdleLines());
  EXPECT_EQ(idle_notes({"sample_store.enable", "sample_store.max_age", "sample_store.capacity"}),
            IdleLines{"without effect: sample_store.max_age, sample_store.capacity "
                      "(sample_store.enable is not true)"});
  EXPECT_EQ(idle_notes({"sample_store.max_age"}, {"sample_store.enable=true"}), IdleLines());
}

TEST(IdleKeys, AnEmptyValueAsksForNothing) {
  const std::string key = "trainer.resume_from_path";
  EXPECT_EQ(idle_notes({key}, {key + "=null"}), IdleLines());
  EXPECT_EQ(idle_notes({key}, {key + "=/run"}),
            IdleLines{"without effect: " + key + " (trainer.resume_mode is not resume_path)"});
  EXPECT_EQ(idle_notes({key}, {key + "=/run", "trainer.resume_mode=resume_path"}), IdleLines());
}

// `starling train` distils with distillation.enabled, which sft has not.
TEST(IdleKeys, ASwitchOfAnotherCommandIsNone) {
  EXPECT_EQ(idle_notes({"distillation.weight"}, {"distillation.teacher.path=/teacher"}, sft_keys()),
            IdleLines());
  EXPECT_EQ(
      idle_notes({"distillation.weight"}, {}, sft_keys()),
      IdleLines{"without effect: distillation.weight (distillation.teacher.path is not set)"});
}

}  // namespace
}  // namespace rl
