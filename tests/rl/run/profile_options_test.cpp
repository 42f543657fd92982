#include "rl/run/profile_options.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace rl {
namespace {

runtime::Result<ProfileOptions> options_of(std::vector<std::string> overrides) {
  const auto config = Config::load({std::nullopt, std::move(overrides)});
  if (!config.ok()) return config.status();
  return ProfileOptions::from_config(*config, "/run");
}

TEST(ProfileOptions, NoStepIsWantedUnlessItIsNamed) {
  const auto none = options_of({});
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_TRUE(none->steps.empty());
  EXPECT_EQ(none->folder, "/run/profile");
  const auto some = options_of({"global_profiler.steps=[2,5]", "global_profiler.save_path=/traces",
                                "global_profiler.profile_continuous_steps=true"});
  ASSERT_TRUE(some.ok()) << some.status().message();
  EXPECT_TRUE(some->wants(2) && some->wants(5));
  EXPECT_FALSE(some->wants(3));
  EXPECT_TRUE(some->continuous);
  EXPECT_EQ(some->folder, "/traces");
}

TEST(ProfileOptions, RanksAreChosenByRole) {
  const auto options =
      options_of({"actor_rollout_ref.actor.profiler.ranks=[1,3]", "critic.profiler.enable=false",
                  "actor_rollout_ref.ref.profiler.ranks=[0]",
                  "actor_rollout_ref.ref.profiler.all_ranks=true"});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_TRUE(options->wants("policy", 3));
  EXPECT_FALSE(options->wants("policy", 0));
  EXPECT_TRUE(options->wants("reference", 2)) << "all_ranks goes before ranks";
  EXPECT_FALSE(options->wants("critic", 0));
  EXPECT_TRUE(options->wants("reward", 0)) << "a role that has no such keys";
}

TEST(ProfileOptions, AStepBelowOneIsNamedByItsKey) {
  const auto status = options_of({"global_profiler.steps=[0]"}).status();
  EXPECT_EQ(status.code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("global_profiler.steps"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace rl
