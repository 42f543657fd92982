#include "rl/run/zero_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "rl/worker/policy_options.h"
#include "rl/worker/zero_level.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr const char* kActorAtOne = "actor_rollout_ref.actor.fsdp_config.zero_level=1";

Config config(std::vector<std::string> overrides = {}) {
  auto config = Config::load({.file = std::nullopt, .overrides = std::move(overrides)});
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  return std::move(*config);
}

int level(const Config& config, const char* role) {
  return static_cast<int>(zero_level_from_config(config, role).value_or(ZeroLevel::kNone));
}

// The policy and a critic of at most that level.
std::vector<ZeroRole> roles(int most_of_critic = 3) {
  return {{kActorRole, [](const Config&) { return true; }},
          {kCriticRole,
           [=](const Config& with) { return level(with, kCriticRole) <= most_of_critic; }}};
}

const SlotOptions kTwo{.nodes = 1, .per_node = 2};

// A run that fits from these levels on.
struct Nodes {
  int actor = 0;
  int critic = 0;
  int asked = 0;

  Status fits(const Config& with) {
    ++asked;
    if (level(with, kActorRole) >= actor && level(with, kCriticRole) >= critic) return {};
    return runtime::resource_exhausted("they do not fit");
  }
};

Result<ZeroChoice> choose(Nodes& nodes, const Config& with, const std::vector<ZeroRole>& all,
                          const SlotOptions& slots = kTwo) {
  return choose_zero_levels(with, all, slots, [&](const Config& one) { return nodes.fits(one); });
}

TEST(ZeroChoice, ARunThatFitsStaysAsItIs) {
  Nodes nodes;
  const Config with = config();
  const auto zero = choose(nodes, with, roles());
  ASSERT_TRUE(zero.ok());
  EXPECT_FALSE(zero->shards());
  EXPECT_EQ(zero->settled(with).serialize(), with.serialize());
  EXPECT_EQ(nodes.asked, 1);
  EXPECT_EQ(zero->text(),
            "actor_rollout_ref.actor.fsdp_config.zero_level=auto is 0, "
            "critic.fsdp.zero_level=auto is 0: the run fits the nodes' memory as far as that is "
            "known");
}

TEST(ZeroChoice, TakesTheLowestLevelThatFits) {
  for (int least = 1; least <= 3; ++least) {
    Nodes nodes{.actor = least};
    const Config with = config();
    const auto zero = choose(nodes, with, roles());
    ASSERT_TRUE(zero.ok()) << zero.status().to_string();
    EXPECT_TRUE(zero->shards());
    EXPECT_EQ(nodes.asked, least + 1);
    const Config settled = zero->settled(with);
    EXPECT_EQ(level(settled, kActorRole), least);
    EXPECT_EQ(level(settled, kCriticRole), least);
    const auto again = Config::deserialize(settled.serialize());
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    EXPECT_EQ(level(*again, kActorRole), least) << "workers read it";
    const std::string why =
        ": with " + std::to_string(least - 1) + " the run does not fit the nodes' memory";
    EXPECT_TRUE(zero->text().ends_with(why)) << zero->text();
  }
}

TEST(ZeroChoice, ARoleGoesAsFarAsItMay) {
  Nodes nodes{.actor = 3, .critic = 1};
  const Config with = config();
  const auto zero = choose(nodes, with, roles(/*most_of_critic=*/2));
  ASSERT_TRUE(zero.ok()) << zero.status().to_string();
  EXPECT_EQ(level(zero->settled(with), kActorRole), 3);
  EXPECT_EQ(level(zero->settled(with), kCriticRole), 2);
}

// A run whose reference is whole or not; the policy as above.
TEST(ZeroChoice, FrozenModelsAreKeptOnceBeforeTheNextLevelIsTaken) {
  std::vector<ZeroRole> all = roles();
  all.push_back({kReferenceRole, [](const Config&) { return true; }, /*is_frozen=*/true});
  const std::string key = "actor_rollout_ref.ref.fsdp_config.zero_level";
  struct Fits {
    int actor, reference;
  };
  const std::pair<Fits, std::string> cases[] = {
      {{1, 0}, "with 0 the run"}, {{1, 3}, "with 1 the run"},
      {{0, 3}, "with 1 the run"}, {{2, 0}, "with 1 and frozen models kept once the run"},
      {{2, 3}, "with 2 the run"}, {{3, 0}, "with 2 and frozen models kept once the run"},
      {{3, 3}, "with 3 the run"}};
  for (const auto& [least, why] : cases) {
    SCOPED_TRACE(std::to_string(least.actor) + ", " + std::to_string(least.reference));
    const auto of_reference = [&](const Config& with) {
      return is_zero_level_auto(with, kReferenceRole) ? 0 : with.get_int(key).value_or(0);
    };
    const auto zero = choose_zero_levels(config(), all, kTwo, [&](const Config& with) -> Status {
      if (level(with, kActorRole) >= least.actor && of_reference(with) >= least.reference)
        return {};
      return runtime::resource_exhausted("they do not fit");
    });
    ASSERT_TRUE(zero.ok()) << zero.status().to_string();
    const Config settled = zero->settled(config());
    EXPECT_EQ(level(settled, kActorRole), std::max(least.actor, 1));
    EXPECT_EQ(of_reference(settled), least.reference);
    EXPECT_TRUE(zero->text().find(why) != std::string::npos) << zero->text();
  }
  const auto none = choose_zero_levels(config(), all, kTwo, [](const Config&) {
    return runtime::resource_exhausted("they do not fit");
  });
  EXPECT_EQ(none.status().message(),
            "they do not fit. zero_level=auto: nor do they with 3 and frozen models kept once");
}

TEST(ZeroChoice, WhereOnlyFrozenModelsAreLeftToChooseEachLevelIsTriedOnce) {
  const std::vector<ZeroRole> frozen = {
      {kReferenceRole, [](const Config&) { return true; }, /*is_frozen=*/true}};
  int asked = 0;
  const auto none = choose_zero_levels(config(), frozen, kTwo, [&](const Config&) {
    ++asked;
    return runtime::resource_exhausted("they do not fit");
  });
  EXPECT_EQ(none.status().code(), runtime::ErrorCode::kResourceExhausted);
  EXPECT_EQ(asked, 2);
}

TEST(ZeroChoice, ANumberStays) {
  Nodes nodes{.actor = 1, .critic = 2};
  const Config with = config({kActorAtOne});
  const auto zero = choose(nodes, with, roles());
  ASSERT_TRUE(zero.ok()) << zero.status().to_string();
  EXPECT_EQ(level(zero->settled(with), kActorRole), 1);
  EXPECT_EQ(level(zero->settled(with), kCriticRole), 2);
  EXPECT_TRUE(zero->text().starts_with("critic.fsdp.zero_level=auto is 2: ")) << zero->text();
  nodes = {.actor = 2};
  const auto none = choose(nodes, config({kActorAtOne, "critic.fsdp.zero_level=0"}), roles());
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->text(), "") << "nothing was left to choose";
  EXPECT_EQ(nodes.asked, 0);
}

TEST(ZeroChoice, OneWorkerAndADeviceHaveNothingToChoose) {
  Nodes nodes{.actor = 1};
  for (const SlotOptions& slots :
       {SlotOptions{.nodes = 1, .per_node = 1}, SlotOptions{.per_node = 2, .device = "cuda"}}) {
    const auto zero = choose(nodes, config(), roles(), slots);
    ASSERT_TRUE(zero.ok());
    EXPECT_FALSE(zero->shards());
    EXPECT_EQ(zero->text(), "");
  }
  EXPECT_EQ(nodes.asked, 0);
}

TEST(ZeroChoice, WhatNoLevelMakesFitIsSaid) {
  Nodes nodes{.actor = 4};
  const auto zero = choose(nodes, config(), roles());
  EXPECT_EQ(zero.status().code(), runtime::ErrorCode::kResourceExhausted);
  EXPECT_EQ(zero.status().message(), "they do not fit. zero_level=auto: nor do they with 3");
  const std::vector<ZeroRole> fixed = {{kActorRole, [](const Config&) { return false; }}};
  EXPECT_EQ(choose(nodes, config(), fixed).status().message(), "they do not fit");
  const auto wrong = choose_zero_levels(
      config(), roles(), kTwo, [](const Config&) { return runtime::invalid_argument("a key"); });
  EXPECT_EQ(wrong.status().code(), runtime::ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace rl
