#include "rl/reward/scorer_factory.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::ErrorCode;

class ScorerFactoryTest : public ::testing::Test {
 protected:
  // Without starting what needs a process or a server.
  ScorerFactory factory() {
    auto made = ScorerFactory::from_config(config_, 2, /*start=*/false, load_model_);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return *made;
  }

  Config config_ = *Config::load({std::nullopt, {}});
  RewardModelLoader load_model_;
};

TEST_F(ScorerFactoryTest, WithoutStartNeedsNoProcess) {
  const auto function = factory().python("/no/file.py", "f", {});
  ASSERT_TRUE(function.ok()) << function.status().to_string();
  EXPECT_EQ(*function, nullptr);
  EXPECT_NE(*factory().rule("gsm8k", ordered_json::object(), "reward.rule"), nullptr);
}

TEST_F(ScorerFactoryTest, NamesTheKeyOfARuleThatThereIsNot) {
  const auto rule = factory().rule("no_such_rule", ordered_json::object(), "reward.rule");
  ASSERT_FALSE(rule.ok());
  EXPECT_NE(rule.status().message().find("reward.rule"), std::string::npos)
      << rule.status().to_string();
  EXPECT_EQ(factory().model("folder").status().code(), ErrorCode::kUnimplemented);
}

TEST_F(ScorerFactoryTest, AsksTheLoaderForModels) {
  std::string asked;
  load_model_ = [&](const std::filesystem::path& model, bool start) -> ScorerResult {
    asked = model.string() + (start ? " started" : "");
    return std::unique_ptr<Scorer>();
  };
  EXPECT_TRUE(factory().model("folder").ok());
  EXPECT_EQ(asked, "folder");
}

TEST_F(ScorerFactoryTest, AMixtureHasWeightsAndNames) {
  const auto mixed = factory().mixture(ordered_json::parse(
      R"([{"rule": "gsm8k", "weight": 0.9}, {"function": "f.py", "name": "mine"}])"));
  ASSERT_TRUE(mixed.ok()) << mixed.status().to_string();
  ASSERT_EQ(mixed->size(), 2u);
  EXPECT_EQ((*mixed)[0].name, "gsm8k");
  EXPECT_EQ((*mixed)[0].weight, 0.9);
  EXPECT_EQ((*mixed)[1].name, "mine");
  const auto twice =
      factory().mixture(ordered_json::parse(R"([{"rule": "gsm8k"}, {"rule": "gsm8k"}])"));
  EXPECT_NE(twice.status().message().find("there is a part 'gsm8k' already"), std::string::npos);
}

}  // namespace
}  // namespace rl
