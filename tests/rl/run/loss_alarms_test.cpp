#include "rl/run/loss_alarms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "rl/config/stage_keys.h"

namespace rl {
namespace {

LossAlarms alarms(AlarmAction action = AlarmAction::kWarn) {
  LossAlarmOptions options;
  options.action = action;
  return LossAlarms(options);
}

// The steps, from 1, at which the training losses raise `alarm`.
std::vector<int> told_at(LossAlarms& watch, const std::vector<double>& losses,
                         const std::string& alarm) {
  std::vector<int> steps;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    Metrics metrics{{"train/loss", losses[i]}};
    watch.observe(metrics);
    if (metrics.contains("alarms/" + alarm)) steps.push_back(static_cast<int>(i) + 1);
  }
  return steps;
}

using Steps = std::vector<int>;

TEST(LossAlarms, ATrainingLossThatRisesIsToldOnceUntilItIsGoodAgain) {
  LossAlarms watch = alarms();
  // As SmolLM2's at a rate of 1e-3; the mean of the last three is above twice the first.
  EXPECT_EQ(told_at(watch, {2.88, 3.13, 15.23, 1.31, 5.16, 2.38}, "train_loss_rise"), Steps{4});
  EXPECT_EQ(told_at(watch, {2.0, 2.0, 2.0, 9.0, 9.0, 9.0}, "train_loss_rise"), Steps{5});
}

TEST(LossAlarms, WhatATrainingLossVariesByIsNotTold) {
  for (const std::vector<double>& losses :
       {std::vector<double>{2.9, 2.0, 4.0, 1.5, 5.0, 2.1, 1.0},
        {0.6931, 0.6822, 0.7247, 0.6699, 0.7058, 0.7161},  // DPO's at 1e-6
        {0.01, 0.03, 0.04, 0.03, 0.05},                    // nothing, three times
        {0.0, 0.5, 0.5, 0.5}}) {
    LossAlarms watch = alarms();
    EXPECT_EQ(told_at(watch, losses, "train_loss_rise"), Steps{}) << losses.front();
  }
}

TEST(LossAlarms, ATrainingLossThatCollapsesIsTold) {
  LossAlarms watch = alarms();
  EXPECT_EQ(told_at(watch, {0.693, 0.2, 0.001, 0.0002, 0.0, 0.0, 0.0}, "train_loss_collapse"),
            Steps{5});
  LossAlarms falling = alarms();
  EXPECT_EQ(told_at(falling, {3.3, 1.5, 0.7, 0.3, 0.1, 0.05, 0.05}, "train_loss_collapse"),
            Steps{});
}

TEST(LossAlarms, ALossThatIsMeantToVanishMay) {
  for (const auto& [loss, may_vanish] : std::map<std::string, bool>{
           {"ipo", true}, {"hinge", true}, {"sppo", true}, {"sigmoid", false}, {"simpo", false}}) {
    ConfigSources sources;
    sources.keys = &dpo_keys();
    sources.overrides = {"preference.loss=" + loss};
    const auto config = Config::load(sources);
    ASSERT_TRUE(config.ok()) << config.status().to_string();
    const auto options = LossAlarmOptions::from_config(*config);
    ASSERT_TRUE(options.ok()) << options.status().to_string();
    LossAlarms watch(*options);
    EXPECT_EQ(told_at(watch, {25.0, 4.0, 0.01, 0.001, 0.0}, "train_loss_collapse"),
              may_vanish ? Steps{} : Steps{5})
        << loss;
    EXPECT_EQ(told_at(watch, {25.0, 90.0, 90.0, 90.0, 90.0}, "train_loss_rise").size(), 1u) << loss;
  }
}

TEST(LossAlarms, AHeldOutLossIsComparedWithItsLowest) {
  LossAlarms watch = alarms();
  const auto tells = [&](double loss) {
    Metrics metrics{{"val/loss", loss}};
    const auto told = watch.observe(metrics);
    EXPECT_EQ(metrics.contains("alarms/val_loss_rise"), !told.empty());
    return told;
  };
  EXPECT_TRUE(tells(3.5).empty());
  EXPECT_TRUE(tells(1.8).empty());
  EXPECT_TRUE(tells(2.0).empty());
  const auto told = tells(9.84);
  ASSERT_EQ(told.size(), 1u);
  for (const char* part : {"val/loss is 9.84, more than 2 times the 1.8 that it was at its lowest",
                           "(trainer.alarms.loss_rise_max)", "lower optim.lr"})
    EXPECT_NE(told[0].find(part), std::string::npos) << part << "\n" << told[0];
  EXPECT_TRUE(tells(12.0).empty()) << "told already";
  EXPECT_TRUE(tells(1.0).empty());
  EXPECT_EQ(tells(std::numeric_limits<double>::quiet_NaN()).size(), 1u);
}

// Nearly nothing may double.
TEST(LossAlarms, NoiseOfAHeldOutLossIsNotTold) {
  LossAlarms watch = alarms();
  for (const double loss : {0.69, 0.01, 0.03, 0.02}) {
    Metrics metrics{{"val/loss", loss}};
    EXPECT_TRUE(watch.observe(metrics).empty()) << loss;
  }
}

TEST(LossAlarms, TheFirstHeldOutLossIsComparedWithTheFirstTrainingLoss) {
  LossAlarms watch = alarms();
  Metrics first{{"train/loss", 2.9}};
  EXPECT_TRUE(watch.observe(first).empty());
  Metrics last{{"train/loss", 3.0}, {"val/loss", 9.8}};
  const auto told = watch.observe(last);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("2.9 of the first training step (trainer.val_before_train=true"),
            std::string::npos)
      << told[0];
}

// SmolLM2 after one step of DPO at a rate of 1e-3: the loss says nothing.
TEST(LossAlarms, ChosenResponsesThatBecomeUnlikelyAreTold) {
  LossAlarms watch = alarms();
  const auto step = [&](double chosen, double reference) {
    Metrics metrics{{"train/loss", 0.69},
                    {"train/logps/chosen", chosen},
                    {"train/ref_logps/chosen", reference},
                    {"train/rewards/chosen", 0.1 * (chosen - reference)}};
    return watch.observe(metrics);
  };
  EXPECT_TRUE(step(-6.5, -6.5).empty());
  EXPECT_TRUE(step(-40.8, -7.4).empty()) << "too few steps yet";
  const auto told = step(-47.7, -9.0);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("(train/logps/chosen) is 31.67, more than 2 times the 7.633"),
            std::string::npos)
      << told[0];
  Metrics held_out{{"val/logps/chosen", -50.7}, {"val/ref_logps/chosen", -8.1}};
  EXPECT_EQ(watch.observe(held_out).size(), 1u) << "at once";
  EXPECT_TRUE(held_out.contains("alarms/val_chosen_fall"));
  LossAlarms usual = alarms();
  Metrics metrics{{"val/logps/chosen", -9.0}, {"val/ref_logps/chosen", -8.1}};
  EXPECT_TRUE(usual.observe(metrics).empty());
}

// SimPO has no reference: its rewards are log-probabilities of a token.
TEST(LossAlarms, WithoutAReferenceTheFirstStepIsOne) {
  LossAlarms watch = alarms();
  std::size_t told = 0;
  for (const double reward : {-2.0, -2.5, -9.0, -9.0}) {
    Metrics metrics{
        {"train/loss", 1.0}, {"train/logps/chosen", -50.0}, {"train/rewards/chosen", reward}};
    told += watch.observe(metrics).size();
  }
  EXPECT_EQ(told, 1u);
}

TEST(LossAlarms, AreSavedAndGoOn) {
  const std::vector<double> losses = {1.0, 1.1, 4.0, 1.0, 1.0, 1.0, 4.0, 4.0};
  LossAlarms whole = alarms();
  const Steps all = told_at(whole, losses, "train_loss_rise");
  ASSERT_EQ(all, (Steps{4, 8}));
  for (std::size_t cut = 1; cut < losses.size(); ++cut) {
    LossAlarms first = alarms(), rest = alarms();
    const auto middle = losses.begin() + static_cast<std::ptrdiff_t>(cut);
    Steps told = told_at(first, {losses.begin(), middle}, "train_loss_rise");
    rest.restore(nlohmann::ordered_json::parse(
        nlohmann::ordered_json{{LossAlarms::kStateKey, first.to_json()}}.dump()));
    EXPECT_EQ(rest.to_json(), first.to_json());
    for (const int step : told_at(rest, {middle, losses.end()}, "train_loss_rise"))
      told.push_back(step + static_cast<int>(cut));
    EXPECT_EQ(told, all) << "cut behind step " << cut;
  }
  LossAlarms fresh = alarms();
  fresh.restore({{LossAlarms::kStateKey, "nonsense"}});
  EXPECT_EQ(fresh.to_json(), alarms().to_json());
}

// As a run that trainer.alarms.action=stop has ended, and the same command goes on with.
TEST(LossAlarms, WhatIsStillBadIsToldAgainByARunThatGoesOn) {
  LossAlarms first = alarms(), rest = alarms();
  EXPECT_EQ(told_at(first, {1.0, 9.0, 9.0, 9.0, 9.0}, "train_loss_rise"), Steps{4});
  rest.restore({{LossAlarms::kStateKey, first.to_json()}});
  EXPECT_EQ(told_at(rest, {9.0, 9.0, 9.0}, "train_loss_rise"), Steps{1});
}

TEST(LossAlarms, ALossAboutItsLimitIsToldOnce) {
  LossAlarms collapsed = alarms();
  std::vector<double> losses = {3.6, 1.0, 0.5};
  for (int i = 0; i < 20; ++i) losses.insert(losses.end(), {0.03, 0.03, 0.03, 0.1, 0.2, 0.1});
  EXPECT_EQ(told_at(collapsed, losses, "train_loss_collapse").size(), 1u);
  EXPECT_EQ(told_at(collapsed, {0.3, 0.3, 0.3, 0.01, 0.01, 0.01}, "train_loss_collapse"), Steps{6});
  LossAlarms risen = alarms();
  EXPECT_EQ(told_at(risen, {1.0, 2.1, 2.1, 2.1, 1.9, 1.9, 2.2, 2.2, 2.2}, "train_loss_rise"),
            Steps{4});
}

TEST(LossAlarms, AreOffWhereTheyAreNotWanted) {
  LossAlarms watch = alarms(AlarmAction::kOff);
  EXPECT_EQ(told_at(watch, {1, 9, 9, 9, 9}, "train_loss_rise"), Steps{});
  const auto config = [](const KeyTable& keys, std::vector<std::string> overrides) {
    return LossAlarmOptions::from_config(
        *Config::load({.file = {}, .overrides = std::move(overrides), .keys = &keys}));
  };
  for (const KeyTable* keys : {&sft_keys(), &dpo_keys(), &kto_keys(), &rm_keys()}) {
    const auto defaults = config(*keys, {});
    ASSERT_TRUE(defaults.ok());
    EXPECT_EQ(defaults->action, AlarmAction::kWarn) << keys->command();
    EXPECT_EQ(defaults->steps, 3) << keys->command();
  }
  const auto set =
      config(sft_keys(), {"trainer.alarms.action=stop", "trainer.alarms.steps=7",
                          "trainer.alarms.loss_rise_max=3", "trainer.alarms.loss_fall_min=0.1"});
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set->action, AlarmAction::kStop);
  EXPECT_EQ(set->steps, 7);
  EXPECT_EQ(set->loss_rise_max, 3.0);
  EXPECT_EQ(set->loss_fall_min, 0.1);
  EXPECT_EQ(config(train_keys(), {"trainer.alarms.action=none"})->action, AlarmAction::kOff);
}

}  // namespace
}  // namespace rl
