#include "rl/algo/custom_advantage.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace rl {
namespace {

using Scores = std::span<const float>;
using Lengths = std::span<const std::int64_t>;

std::vector<float> grpo(Scores scores, Groups groups, Lengths) {
  return grpo_advantages(scores, groups);
}

TEST(CustomAdvantages, AreFoundByTheirNameAndOthersAreRefusedWithTheList) {
  EXPECT_EQ(find_custom_advantages("test_grpo"), nullptr);
  EXPECT_FALSE(parse_advantage_estimator("test_grpo").ok());
  register_advantage_estimator("test_grpo", grpo);
  register_advantage_estimator("test_opo",
                               opo_advantages);  // one that there is has the signature, too
  const auto parsed = parse_advantage_estimator("test_grpo");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, AdvantageEstimator::kCustom);
  EXPECT_FALSE(traits_of(*parsed).is_per_token);
  EXPECT_EQ(traits_of(*parsed).group_size_min, 1);
  EXPECT_NE(parse_advantage_estimator("other").status().message().find("test_grpo, test_opo"),
            std::string::npos);

  const std::vector<float> scores = {1.0F, 0.0F, 0.5F, 0.25F};
  const std::vector<std::int64_t> groups = {0, 0, 1, 1}, lengths = {3, 1, 2, 2};
  EXPECT_EQ(*find_custom_advantages("test_grpo")->of(scores, groups, lengths),
            grpo_advantages(scores, groups));
  EXPECT_EQ(*find_custom_advantages("test_opo")->of(scores, groups, lengths),
            opo_advantages(scores, groups, lengths));
}

TEST(CustomAdvantages, TellWhatIsWrongWithThem) {
  const std::vector<float> scores = {1.0F, 0.0F};
  const std::vector<std::int64_t> groups = {0, 0}, lengths = {3, 1};
  const auto told = [&](AdvantageFunction function) {
    return CustomAdvantages{"test_wrong", std::move(function)}
        .of(scores, groups, lengths)
        .status()
        .message();
  };
  EXPECT_EQ(told([](Scores, Groups, Lengths) { return std::vector<float>{1.0F}; }),
            "advantage estimator \"test_wrong\": it gives 1 advantages for 2 scores");
  EXPECT_NE(told([](Scores, Groups, Lengths) {
              return std::vector<float>{0.0F, std::numeric_limits<float>::quiet_NaN()};
            }).find("response 1, which scores 0"),
            std::string::npos);
  EXPECT_EQ(
      told([](Scores, Groups, Lengths) -> std::vector<float> { throw std::runtime_error("no"); }),
      "advantage estimator \"test_wrong\": no");
  EXPECT_EQ(told([](Scores, Groups, Lengths) -> std::vector<float> { throw 1; }),
            "advantage estimator \"test_wrong\": it threw something that is not a std::exception");
}

TEST(CustomAdvantagesDeathTest, NamesAreTakenOnce) {
  EXPECT_DEATH(register_advantage_estimator("grpo_vectorized", grpo),
               "takes \"grpo_vectorized\" already");
  register_advantage_estimator("test_twice", grpo);
  EXPECT_DEATH(register_advantage_estimator("test_twice", grpo), "takes \"test_twice\" already");
}

}  // namespace
}  // namespace rl
