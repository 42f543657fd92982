#include "rl/algo/custom_advantage.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "rl/algo/response_estimator.h"

namespace rl {
namespace {

using Scores = std::span<const float>;
using Lengths = std::span<const std::int64_t>;

std::vector<float> grpo(Scores scores, Groups groups, Lengths) {
  return grpo_advantages(scores, groups);
}

runtime::Result<std::vector<float>> advantages_by(std::string_view name,
                                                  const ScoredResponses& responses) {
  return advantage_estimator(name).of_responses()->advantages(responses, {});
}

TEST(CustomAdvantages, AreFoundByTheirNameAndOthersAreRefusedWithTheList) {
  EXPECT_EQ(find_custom_estimator("test_grpo"), nullptr);
  EXPECT_FALSE(parse_advantage_estimator("test_grpo").ok());
  register_advantage_estimator("test_grpo", grpo);
  register_advantage_estimator("test_opo",
                               opo_advantages);  // one that there is has the signature, too
  const auto parsed = parse_advantage_estimator("test_grpo");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, find_custom_estimator("test_grpo"));
  EXPECT_EQ((*parsed)->name(), "test_grpo");
  EXPECT_EQ((*parsed)->of_tokens(), nullptr);
  EXPECT_EQ((*parsed)->traits().group_size_min, 1);
  EXPECT_EQ((*parsed)->traits().remainder_min, 2);
  EXPECT_NE(parse_advantage_estimator("other").status().message().find("test_grpo, test_opo"),
            std::string::npos);

  const ScoredResponses responses{.rewards = {1.0F, 0.0F, 0.5F, 0.25F},
                                  .scores = {1.0F, 1.0F, 1.0F, 1.0F},  // before the KL
                                  .groups = {0, 0, 1, 1},
                                  .lengths = {3, 1, 2, 2}};
  EXPECT_EQ(*advantages_by("test_grpo", responses),
            grpo_advantages(responses.rewards, responses.groups));
  EXPECT_EQ(*advantages_by("test_opo", responses),
            opo_advantages(responses.rewards, responses.groups, responses.lengths));
}

TEST(CustomAdvantages, TellWhatIsWrongWithThem) {
  const ScoredResponses responses{.rewards = {1.0F, 0.0F}, .groups = {0, 0}, .lengths = {3, 1}};
  const auto told = [&](const std::string& name, AdvantageFunction function) {
    register_advantage_estimator(name, std::move(function));
    return advantages_by(name, responses).status().message();
  };
  EXPECT_EQ(told("test_short", [](Scores, Groups, Lengths) { return std::vector<float>{1.0F}; }),
            "advantage estimator \"test_short\": it gives 1 advantages for 2 scores");
  EXPECT_NE(told("test_nan",
                 [](Scores, Groups, Lengths) {
                   return std::vector<float>{0.0F, std::numeric_limits<float>::quiet_NaN()};
                 })
                .find("response 1, which scores 0"),
            std::string::npos);
  EXPECT_EQ(
      told("test_throws",
           [](Scores, Groups, Lengths) -> std::vector<float> { throw std::runtime_error("no"); }),
      "advantage estimator \"test_throws\": no");
  EXPECT_EQ(told("test_throws_1", [](Scores, Groups, Lengths) -> std::vector<float> { throw 1; }),
            "advantage estimator \"test_throws_1\": it threw something that is not a "
            "std::exception");
}

// The reward's components alone.
class FirstComponent : public ResponseEstimator {
 public:
  FirstComponent()
      : ResponseEstimator(
            {.name = "test_component", .needs_components = true, .group_size_min = 3}) {}
  runtime::Result<std::vector<float>> advantages(const ScoredResponses& responses,
                                                 const ResponseSettings&) const override {
    return responses.components.front();
  }
};

TEST(CustomAdvantages, AreAlsoAClassWithTraits) {
  register_advantage_estimator(std::make_unique<FirstComponent>());
  EXPECT_TRUE(advantage_estimator("test_component").traits().needs_components);
  EXPECT_EQ(advantage_estimator("test_component").traits().group_size_min, 3);
  EXPECT_EQ(*advantages_by("test_component", {.components = {{0.5F, 2.0F}, {1.0F, 1.0F}}}),
            (std::vector<float>{0.5F, 2.0F}));
}

TEST(CustomAdvantagesDeathTest, NamesAreTakenOnce) {
  EXPECT_DEATH(register_advantage_estimator("grpo_vectorized", grpo),
               "takes \"grpo_vectorized\" already");
  register_advantage_estimator("test_twice", grpo);
  EXPECT_DEATH(register_advantage_estimator("test_twice", grpo), "takes \"test_twice\" already");
  EXPECT_DEATH(register_advantage_estimator("test_none", nullptr), "[Cc]heck failed");
}

}  // namespace
}  // namespace rl
