#include "rl/run/rl/prompt_source.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rl/config/config.h"
#include "rl/worker/toy_model.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::Result;

// Twelve rows in their order, four a step, on two workers.
class PromptSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto made =
        make_toy_model(folder_.path(), {.layers = 1, .hidden_size = 16, .intermediate_size = 16});
    ASSERT_TRUE(made.ok()) << made.to_string();
    std::ofstream rows(folder_.path() / "rows.jsonl");
    for (int row = 0; row < 12; ++row)
      rows << R"({"prompt": "a", "answer": "b", "data_source": "toy"})"
           << "\n";
    rows.close();
    const auto config =
        Config::load({.file = {}, .overrides = {"data.train_files=" + folder_.file("rows.jsonl")}});
    ASSERT_TRUE(config.ok()) << config.status().to_string();
    const auto dataset = dataset_options(*config, Split::kTrain);
    ASSERT_TRUE(dataset.ok()) << dataset.status().to_string();
    auto feed = PromptFeed::create(*config, **dataset,
                                   {.model = folder_.path(),
                                    .batch_prompts = 4,
                                    .mini_batch_prompts = 4,
                                    .workers = 2,
                                    .shuffle = false});
    ASSERT_TRUE(feed.ok()) << feed.status().to_string();
    feed_ = std::move(*feed);
  }
  static std::vector<std::int64_t> rows_of(const Result<StepPrompts>& prompts) {
    EXPECT_TRUE(prompts.ok()) << prompts.status().to_string();
    return prompts.ok() ? prompts->rows : std::vector<std::int64_t>();
  }
  static std::vector<std::uint64_t> seeds_of(const Result<StepPrompts>& prompts) {
    std::vector<std::uint64_t> seeds;
    if (!prompts.ok()) return seeds;
    for (const PromptBatch& batch : prompts->batches)
      seeds.insert(seeds.end(), batch.seeds.begin(), batch.seeds.end());
    return seeds;
  }

  using Rows = std::vector<std::int64_t>;
  support::TemporaryFolder folder_;
  std::unique_ptr<PromptFeed> feed_;
};

TEST_F(PromptSourceTest, AFeedGivesTheNextRowsForStepsAndRounds) {
  FeedPrompts source(*feed_);
  const nlohmann::json before = source.position();
  const auto first = source.next(1, 0), again = source.next(1, 1), second = source.next(2, 0);
  EXPECT_EQ(rows_of(first), (Rows{0, 1, 2, 3}));
  EXPECT_EQ(rows_of(again), (Rows{4, 5, 6, 7})) << "another round has other rows";
  EXPECT_EQ(rows_of(second), (Rows{8, 9, 10, 11}));
  EXPECT_NE(source.position(), before);
  EXPECT_EQ(source.position(), feed_->position());
}

TEST_F(PromptSourceTest, ChosenRowsComeInTheirOrderAndLeaveThePosition) {
  std::vector<std::int64_t> chosen;
  ChosenPrompts source(*feed_, [&] { return chosen; });
  EXPECT_EQ(rows_of(source.next(1, 0)), (Rows{0, 1, 2, 3})) << "none is chosen: the next ones";
  const nlohmann::json behind_first = source.position();
  chosen = {11, 0, 4, 7};
  EXPECT_EQ(rows_of(source.next(2, 0)), chosen);
  EXPECT_EQ(source.position(), behind_first);
  chosen = {};
  EXPECT_EQ(rows_of(source.next(3, 0)), (Rows{4, 5, 6, 7}));
}

TEST_F(PromptSourceTest, ChosenRowsHaveOtherSeedsInEachStep) {
  ChosenPrompts source(*feed_, [] { return Rows{7, 8, 9, 10}; });
  const auto second = source.next(2, 0), third = source.next(3, 0), repeated = source.next(2, 0);
  EXPECT_EQ(rows_of(second), rows_of(third));
  EXPECT_NE(seeds_of(second), seeds_of(third));
  EXPECT_EQ(seeds_of(second), seeds_of(repeated)) << "a run that goes on repeats its samples";
}

}  // namespace
}  // namespace rl
