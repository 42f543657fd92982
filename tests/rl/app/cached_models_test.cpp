#include "rl/app/cached_models.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "rl/worker/toy_model.h"
#include "tests/rl/app/offline_hub.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

class CachedModelsTest : public ::testing::Test {
 protected:
  CachedModelsTest() {
    const support::TemporaryFolder model;
    EXPECT_TRUE(
        make_toy_model(model.path(), {.layers = 1, .hidden_size = 16, .intermediate_size = 16})
            .ok());
    cached_ = hub_.add("small", "main", model.path()).string();
  }
  static Config load(std::vector<std::string> overrides) {
    auto config = Config::load({.file = {}, .overrides = std::move(overrides)});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return std::move(*config);
  }

  const std::string policy_ = "actor_rollout_ref.model.path", critic_ = "critic.model.path";
  const std::vector<std::string> keys_ = {policy_, critic_};
  const OfflineHub hub_;
  std::string cached_;
};

TEST_F(CachedModelsTest, ANameIsThePathThatTheCacheHas) {
  const CachedModels models = find_cached_models(
      load({policy_ + "=small", critic_ + "=/no/such/model",
            "reward.mixture=[{rule: gsm8k, weight: 1}, {model: small, weight: 1}]"}),
      keys_);
  EXPECT_EQ(models.config.get_string(policy_).value_or(""), cached_);
  EXPECT_EQ(models.config.origin(policy_), "from the command line");
  EXPECT_EQ((*models.config.find("reward.mixture"))[1]["model"], cached_);
  EXPECT_EQ(models.config.get_string(critic_).value_or(""), "/no/such/model") << "a path";
  EXPECT_TRUE(models.missing.empty());
  EXPECT_TRUE(models.check().ok());
}

TEST_F(CachedModelsTest, WhatIsMissingIsAllNamedWhereNothingIsFetched) {
  const CachedModels models = find_cached_models(
      load({policy_ + "=org/none", critic_ + "=small",
            "reward.mixture=[{rule: gsm8k, weight: 1}, {model: org/judge, weight: 1}]"}),
      keys_);
  EXPECT_TRUE(models.lacks(policy_));
  EXPECT_FALSE(models.lacks(critic_));
  EXPECT_TRUE(models.notes.empty());
  support::expect_failure(models.check(), runtime::ErrorCode::kNotFound,
                          {policy_ + ": org/none", "\nreward.mixture[1].model: org/judge",
                           "HF_HUB_OFFLINE keeps a run from fetching it"});
  EXPECT_EQ(models.config.get_string(policy_).value_or(""), "org/none") << "for messages";
}

TEST_F(CachedModelsTest, WhatARunWouldFetchIsANote) {
  const support::ScopedVariable online("HF_HUB_OFFLINE", nullptr);
  const support::ScopedVariable also("TRANSFORMERS_OFFLINE", nullptr);
  const CachedModels models = find_cached_models(load({policy_ + "=org/none"}), keys_);
  EXPECT_TRUE(models.check().ok()) << models.check().to_string();
  EXPECT_EQ(models.missing, std::vector<std::string>{policy_});
  ASSERT_EQ(models.notes.size(), 1U);
  EXPECT_NE(models.notes[0].find(policy_ + ": org/none"), std::string::npos) << models.notes[0];
}

// The toy is no model of the hub, and the command has no key but its own.
TEST_F(CachedModelsTest, TheToyAndKeysThatAreNotThereStayAsTheyAre) {
  const Config config = load({policy_ + "=toy"});
  std::vector<std::string> keys = keys_;
  keys.emplace_back("preference.reference_path");
  const CachedModels models = find_cached_models(config, keys);
  EXPECT_EQ(models.config.to_json(), config.to_json());
  EXPECT_TRUE(models.missing.empty());
}

}  // namespace
}  // namespace rl
