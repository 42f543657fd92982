#include "rl/run/rl/sample_store.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace rl {
namespace {

StoredGroup group(std::int64_t step, std::vector<double> scores, std::int64_t row = 0) {
  StoredGroup made;
  made.row = row;
  made.step = step;
  made.scores = std::move(scores);
  return made;
}

std::vector<StoredGroup> many(std::int64_t step, std::int64_t count) {
  std::vector<StoredGroup> groups;
  for (std::int64_t i = 0; i < count; ++i) groups.push_back(group(step, {0.0, 1.0}, i));
  return groups;
}

TEST(SampleStore, DrawsWithoutReplacementAndAsOftenAsIsAllowed) {
  SampleStore store({.enabled = true, .uses_max = 2});
  store.add(many(1, 10));
  std::map<std::int64_t, int> uses;
  for (int round = 0; round < 2; ++round) {
    std::set<std::int64_t> rows;
    for (const StoredGroup& drawn : store.draw(2, 10, 7)) {
      EXPECT_TRUE(rows.insert(drawn.row).second);
      ++uses[drawn.row];
    }
    EXPECT_EQ(rows.size(), 10U);
  }
  for (const auto& [row, times] : uses) EXPECT_EQ(times, 2) << row;
  EXPECT_TRUE(store.draw(2, 10, 7).empty()) << "each was used twice";
}

TEST(SampleStore, TheSeedDecides) {
  const auto rows = [](std::uint64_t seed) {
    SampleStore store({.enabled = true});
    store.add(many(1, 50));
    std::vector<std::int64_t> drawn;
    for (const StoredGroup& stored : store.draw(2, 5, seed)) drawn.push_back(stored.row);
    return drawn;
  };
  EXPECT_EQ(rows(1), rows(1));
  EXPECT_NE(rows(1), rows(2));
}

TEST(SampleStore, TheOldAndTheSurplusGo) {
  SampleStore store({.enabled = true, .capacity = 6, .age_max = 2});
  store.add(many(1, 4));
  store.add(many(2, 4));
  EXPECT_EQ(store.groups().size(), 6U);
  EXPECT_EQ(store.groups().front().row, 2) << "the oldest went";
  EXPECT_EQ(store.draw(4, 100, 1).size(), 4U) << "those of step 1 are three steps old";
  EXPECT_EQ(store.groups().size(), 4U);
  const Metrics metrics = store.metrics(4);
  EXPECT_EQ(metrics.at("sample_store/size"), 4.0);
  EXPECT_EQ(metrics.at("sample_store/age_mean"), 2.0);
}

TEST(SampleStore, LeavesOutWhatTheFilterSays) {
  SampleStore store(
      {.enabled = true, .score_deviation_min = 0.1, .score_min = 0.2, .score_max = 0.8});
  store.add({group(1, {0.5, 0.5}), group(1, {0.0, 0.2}), group(1, {1.0, 0.8}),
             group(1, {0.0, 1.0}, 9), group(1, {})});
  ASSERT_EQ(store.groups().size(), 1U);
  EXPECT_EQ(store.groups().front().row, 9);
}

TEST(SampleStore, OrdersBySpreadOrAge) {
  int spread = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SampleStore store({.enabled = true, .order = ReplayOrder::kVariance});
    store.add({group(1, {0.4, 0.6}, 1), group(1, {0.0, 1.0}, 2), group(1, {0.5, 0.5}, 3)});
    const auto drawn = store.draw(2, 3, seed);
    EXPECT_EQ(drawn.back().row, 3) << "where nothing is to be learned comes last";
    spread += drawn.front().row == 2 ? 1 : 0;
  }
  EXPECT_NEAR(spread, 200.0 * 5 / 6, 25) << "five times the deviation, five times as likely";
  SampleStore store({.enabled = true, .order = ReplayOrder::kNewest});
  store.add(many(1, 3));
  store.add(many(2, 3));
  for (const StoredGroup& drawn : store.draw(3, 3, 5)) EXPECT_EQ(drawn.step, 2);
}

SavedGroup saved() {
  SavedGroup group;
  group.batch.prompts.append(std::vector<std::int32_t>{1, 2, 3});
  for (int sample = 0; sample < 2; ++sample) {
    group.batch.prompt_of.push_back(0);
    group.batch.responses.append(std::vector<std::int32_t>{4, 5});
    group.batch.logprobs.insert(group.batch.logprobs.end(), {-0.1F, -0.7F});
    group.batch.stopped.push_back(1);
  }
  group.step = 7;
  group.scores = {0.0, 1.0};
  group.task = {"toy", "ab", "toy:1", "{}"};
  return group;
}

TEST(SampleStore, WhatIsSavedIsReadAgain) {
  const std::vector<SavedGroup> groups{saved(), saved()};
  const auto read = decode_groups(encode_groups(groups));
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(*read, groups);
}

TEST(SampleStore, DamagedFilesAreErrors) {
  const std::string bytes = encode_groups({saved()});
  for (std::size_t length = 0; length < bytes.size(); length += 3)
    EXPECT_FALSE(decode_groups(bytes.substr(0, length)).ok()) << length;
  EXPECT_EQ(decode_groups("nothing of ours").status().code(), runtime::ErrorCode::kInvalidArgument);
  SavedGroup lying = saved();
  lying.scores.pop_back();
  EXPECT_FALSE(decode_groups(encode_groups({lying})).ok());
  lying = saved();
  lying.batch.prompt_of[1] = 5;
  EXPECT_FALSE(decode_groups(encode_groups({lying})).ok());
}

TEST(SampleStore, TheLeastScoreIsAtMostTheHighest) {
  const auto config =
      Config::load({std::nullopt, {"sample_store.min_score=0.5", "sample_store.max_score=0.25"}});
  ASSERT_TRUE(config.ok());
  EXPECT_NE(SampleStoreOptions::from_config(*config).status().message().find(
                "sample_store.min_score: must be at most sample_store.max_score"),
            std::string::npos);
}

}  // namespace
}  // namespace rl
