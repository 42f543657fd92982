// The data of a run: which of them are opened, and how.
#include "rl/run/rl/run_feeds.h"

#include "tests/rl/run/rl/toy_run.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

class RunFeedsTest : public ToyRunTest {
 protected:
  runtime::Result<RunFeeds> open(const Config& config) const {
    auto feeds = RunFeeds::open(config, options(config), model(), /*workers=*/2);
    if (!feeds.ok()) return feeds.status();
    if (const auto others = feeds->open_others(config, options(config)); !others.ok())
      return others;
    return feeds;
  }
  // Rows with those prompts; the answer is one that the rule of `source` reads.
  std::string file(const std::string& name, const std::vector<std::string>& prompts,
                   const std::string& source = "toy") const {
    std::string text;
    for (const std::string& prompt : prompts)
      text += R"({"prompt":")" + prompt + R"(","answer":"b","data_source":")" + source + "\"}\n";
    return rows(name, text);
  }
  std::vector<std::string> with_files(std::vector<std::string> overrides) const {
    overrides.insert(overrides.begin(),
                     {"data.dataset_name=null",
                      "data.train_files=" + file("train.jsonl", {"ab", "cd", "ef", "gh"})});
    return overrides;
  }
};

TEST_F(RunFeedsTest, DataThatNothingAsksForAreNotLookedFor) {
  const auto feeds =
      open(config(with_files({"data.val_files=/nowhere.jsonl", "data.sft_files=/nowhere.jsonl"})));
  ASSERT_TRUE(feeds.ok()) << feeds.status().to_string();
  EXPECT_EQ(feeds->training->rows(), 4);
  EXPECT_EQ(feeds->validation, nullptr);
  EXPECT_EQ(feeds->demonstrations, nullptr);
}

TEST_F(RunFeedsTest, AValidationIsOfAllRowsInTheirOrderUnlessABatchIsSet) {
  std::vector<std::string> overrides =
      with_files({"trainer.test_freq=2",
                  "data.val_files=" + file("val.jsonl", {"a", "bb", "ccc", "dddd", "eeeee"})});
  const auto rows_of = [](const std::vector<StepPrompts>& steps) {
    std::vector<std::vector<std::int64_t>> rows;
    for (const StepPrompts& step : steps) rows.push_back(step.rows);
    return rows;
  };
  using RowLists = std::vector<std::vector<std::int64_t>>;
  auto feeds = open(config(overrides));
  ASSERT_TRUE(feeds.ok()) << feeds.status().to_string();
  ASSERT_NE(feeds->validation, nullptr);
  EXPECT_EQ(rows_of(*feeds->validation->all()), (RowLists{{0, 1, 2, 3, 4}}));
  overrides.push_back("data.val_batch_size=3");
  feeds = open(config(overrides));
  ASSERT_TRUE(feeds.ok()) << feeds.status().to_string();
  EXPECT_EQ(rows_of(*feeds->validation->all()), (RowLists{{0, 1, 2}, {3, 4}}));
  overrides.back() = "data.val_batch_size=100";
  EXPECT_EQ(rows_of(*open(config(overrides))->validation->all()), (RowLists{{0, 1, 2, 3, 4}}));
}

TEST_F(RunFeedsTest, AWarmStartHasItsOwnBatchesAndItsErrorsSayWhoseTheyAre) {
  std::string demonstrations;
  for (const char* prompt : {"ab", "cd", "ef"})
    demonstrations += std::string(R"({"prompt":")") + prompt + R"(","response":"b"})" + "\n";
  std::vector<std::string> overrides =
      with_files({"sft.steps=1", "sft.train_batch_size=2",
                  "data.sft_files=" + rows("sft.jsonl", demonstrations)});
  const auto feeds = open(config(overrides));
  ASSERT_TRUE(feeds.ok()) << feeds.status().to_string();
  ASSERT_NE(feeds->demonstrations, nullptr);
  const auto step = feeds->demonstrations->next_demonstrations();
  ASSERT_TRUE(step.ok()) << step.status().to_string();
  EXPECT_EQ(step->batches.size(), 2u) << "one a worker";
  overrides.push_back("sft.train_batch_size=5");
  support::expect_failure(open(config(overrides)).status(), runtime::ErrorCode::kInvalidArgument,
                          {"warm start", "sft.train_batch_size"});
}

TEST_F(RunFeedsTest, AFaultOfValidationDataSaysWhoseItIs) {
  const std::string longer(40, 'a');  // than data.max_prompt_length
  const auto feeds = open(
      config(with_files({"trainer.test_freq=2", "data.val_files=" + file("v.jsonl", {longer})})));
  support::expect_failure(feeds.status(), runtime::ErrorCode::kInvalidArgument,
                          {"validation data", "v.jsonl:1"});
}

TEST_F(RunFeedsTest, RewardsAreCheckedOnValidationRowsToo) {
  const Config read =
      config(with_files({"trainer.test_freq=2", "data.val_files=" + file("v.jsonl", {"ab"}, "?")}));
  const auto feeds = open(read);
  ASSERT_TRUE(feeds.ok()) << feeds.status().to_string();
  support::expect_failure(check_rewards(read, *feeds), runtime::ErrorCode::kInvalidArgument,
                          {"v.jsonl:1"});
}

}  // namespace
}  // namespace rl
