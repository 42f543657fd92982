#include "rl/feed/preference_feed.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "rl/config/stage_keys.h"
#include "rl/worker/toy_model.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

class PreferenceFeedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() / ("starling-preference-feed-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ASSERT_TRUE(
        make_toy_model(folder_, {.layers = 1, .hidden_size = 32, .intermediate_size = 32}).ok());
  }
  void TearDown() override { fs::remove_all(folder_); }

  runtime::Result<std::unique_ptr<PreferenceFeed>> feed(
      PreferenceForm form, std::int64_t workers, std::vector<std::string> overrides = {}) const {
    overrides.insert(overrides.begin(),
                     {"data.toy.rows=30", "data.max_length=32", "data.toy.letters=4"});
    const bool files = std::any_of(overrides.begin(), overrides.end(), [](const std::string& key) {
      return key.starts_with("data.train_files");
    });
    if (!files) overrides.push_back("data.dataset_name=toy");
    const auto config =
        Config::load({.file = {},
                      .overrides = overrides,
                      .keys = form == PreferenceForm::kPairs ? &dpo_keys() : &kto_keys()});
    if (!config.ok()) return config.status();
    const auto rows = preference_dataset(*config, Split::kTrain, form);
    if (!rows.ok()) return rows.status();
    return PreferenceFeed::create(*config, **rows, form,
                                  {.model = folder_,
                                   .context = 64,
                                   .batch_rows = 5,
                                   .workers = workers,
                                   .shuffle = true,
                                   .shuffle_seed = 3});
  }

  std::string write(const std::string& text) const {
    std::ofstream(folder_ / "rows.jsonl") << text;
    return "data.train_files=" + (folder_ / "rows.jsonl").string();
  }

  fs::path folder_;
};

// All rows of a step, whichever worker has them.
struct Row {
  std::vector<std::int32_t> prompt, response, other;
  auto operator<=>(const Row&) const = default;
};

std::vector<Row> rows_of(const PreferenceStep& step) {
  const auto ids = [](std::span<const std::int32_t> row) {
    return std::vector<std::int32_t>(row.begin(), row.end());
  };
  std::vector<Row> rows;
  for (const PreferenceBatch& batch : step.batches) {
    EXPECT_TRUE(batch.validate().ok());
    for (std::int64_t i = 0; i < batch.rows(); ++i)
      rows.push_back(
          {ids(batch.prompts.row(i)), ids(batch.responses.row(i)), ids(batch.others.row(i))});
  }
  return rows;
}

TEST_F(PreferenceFeedTest, StepsDoNotDependOnTheNumberOfWorkers) {
  for (const PreferenceForm form : {PreferenceForm::kPairs, PreferenceForm::kSingles}) {
    const auto one = feed(form, 1);
    const auto three = feed(form, 3);
    ASSERT_TRUE(one.ok() && three.ok()) << one.status().to_string();
    for (int i = 0; i < 8; ++i) {
      const auto a = (*one)->next();
      const auto b = (*three)->next();
      ASSERT_TRUE(a.ok() && b.ok());
      EXPECT_EQ(b->batches.size(), 3u);
      std::vector<Row> rows = rows_of(*a), spread = rows_of(*b);
      std::sort(rows.begin(), rows.end());
      std::sort(spread.begin(), spread.end());
      EXPECT_EQ(rows, spread);
      std::vector<std::int64_t> tokens;
      for (const PreferenceBatch& batch : b->batches) tokens.push_back(batch.tokens());
      EXPECT_GT(*std::min_element(tokens.begin(), tokens.end()), 0);
      EXPECT_EQ(a->rows, 5);
      EXPECT_EQ(a->tokens, b->tokens);
      EXPECT_EQ(a->wanted, b->wanted);
    }
    EXPECT_EQ((*one)->rows().epoch(), 1);
  }
}

TEST_F(PreferenceFeedTest, GoesOnFromItsPosition) {
  const auto whole = feed(PreferenceForm::kPairs, 2);
  ASSERT_TRUE(whole.ok());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE((*whole)->next().ok());
  const auto resumed = feed(PreferenceForm::kPairs, 2);
  ASSERT_TRUE((*resumed)->rows().resume((*whole)->rows().position()).ok());
  EXPECT_EQ(rows_of(*(*whole)->next()), rows_of(*(*resumed)->next()));
}

// A pair is two responses; each gets a response that answers another prompt, cut to what there is
// room for.
TEST_F(PreferenceFeedTest, PairsAreTwoSinglesEachWithAnAnswerToAnother) {
  std::string rows;
  for (const char* letter : {"a", "b", "c", "d", "e"})
    rows += R"({"prompt": ")" + std::string(letter) + R"(", "chosen": ")" + letter + letter +
            R"(", "rejected": "xyzxyz"})" + "\n";
  const auto made = feed(PreferenceForm::kSingles, 2, {write(rows), "data.max_length=8"});
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const auto step = (*made)->next();
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(step->rows, 10);
  EXPECT_EQ(step->wanted, 5);
  const std::vector<Row> all = rows_of(*step);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_LE(all[i].prompt.size() + all[i].other.size(), 8u);
    const bool is_another = std::any_of(all.begin(), all.end(), [&](const Row& row) {
      return row.response == all[i].other && row.prompt != all[i].prompt;
    });
    EXPECT_TRUE(is_another) << i;
  }
}

TEST_F(PreferenceFeedTest, RowsThatAreWrongAreFoundAtOnce) {
  const std::string file = write(
      "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n{\"prompt\": \"a\", "
      "\"chosen\": \"b\", \"rejected\": \"b\"}\n");
  const auto equal = feed(PreferenceForm::kPairs, 1, {file});
  ASSERT_FALSE(equal.ok());
  EXPECT_NE(equal.status().message().find("rows.jsonl:2: 'chosen' and 'rejected' are equal"),
            std::string::npos)
      << equal.status().message();
  const auto long_row = feed(PreferenceForm::kPairs, 1, {"data.max_length=8"});
  ASSERT_FALSE(long_row.ok());
  EXPECT_NE(long_row.status().message().find("data.max_length is 8"), std::string::npos)
      << long_row.status().message();
  EXPECT_EQ(feed(PreferenceForm::kPairs, 1, {"data.conversations=messages"}).status().code(),
            runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(feed(PreferenceForm::kPairs, 1, {"data.truncation=middle"}).ok(), false);
  const auto streamed = feed(
      PreferenceForm::kPairs, 1,
      {write("{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n{\"prompt\": \"b\", "
             "\"chosen\": \"b\", \"rejected\": \"c\"}\n{\"prompt\": \"c\", \"chosen\": \"b\", "
             "\"rejected\": \"c\"}\n{\"prompt\": \"d\", \"chosen\": \"b\", \"rejected\": "
             "\"c\"}\n{\"prompt\": \"e\", \"chosen\": \"b\", \"rejected\": \"c\"}\n"),
       "data.streaming=true"});
  ASSERT_TRUE(streamed.ok()) << streamed.status().to_string();
  EXPECT_EQ((*streamed)->next()->rows, 5);
}

TEST_F(PreferenceFeedTest, TheLengthsOfPairsAndSinglesAreKnown) {
  const std::string row = R"({"prompt": "abcd", "chosen": "ab", "rejected": "a"})"
                          "\n";
  const std::string file = write(row + row + row + row + row);
  const auto pairs = feed(PreferenceForm::kPairs, 1, {file});
  ASSERT_TRUE(pairs.ok()) << pairs.status().to_string();
  const RowLengths shared = (*pairs)->row_lengths(/*shares_prompts=*/true);
  EXPECT_EQ(shared.longest, 4 + 3);
  EXPECT_EQ(shared.items, std::vector<std::int64_t>(5, 4 + 3 + 2));
  EXPECT_EQ(shared.sequences_per_item, 2);
  EXPECT_EQ((*pairs)->row_lengths(false).items.front(), 4 + 3 + 4 + 2);
  const auto singles = feed(PreferenceForm::kSingles, 1, {file});
  ASSERT_TRUE(singles.ok()) << singles.status().to_string();
  const RowLengths each = (*singles)->row_lengths(true);
  EXPECT_EQ(each.items_per_row, 2);
  EXPECT_EQ(each.items.size(), 10u);
  EXPECT_EQ(each.items.front(), 7);
  EXPECT_EQ(each.items.back(), 6);
}

}  // namespace
}  // namespace rl
