// The options of the feed of training prompts, and the rows that a reward can judge.
#include "rl/run/rl/training_feed.h"

#include "rl/data/row_feed.h"
#include "tests/rl/run/rl/toy_run.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

class TrainingFeedTest : public ToyRunTest {
 protected:
  runtime::Result<PromptFeedOptions> read(const std::vector<std::string>& overrides) const {
    const Config config = this->config(overrides);
    return training_feed_options(config, options(config), model(), /*workers=*/2);
  }
  static Dataset dataset(const std::string& file, bool streaming = false) {
    DatasetOptions options;
    options.files = {file};
    options.streaming = streaming;
    auto dataset = Dataset::load(options);
    EXPECT_TRUE(dataset.ok()) << dataset.status().to_string();
    return std::move(*dataset);
  }
  std::unique_ptr<RewardFunction> reward(const std::vector<std::string>& overrides) const {
    auto reward = RewardFunction::from_config(config(overrides), /*workers=*/1, /*start=*/false);
    EXPECT_TRUE(reward.ok()) << reward.status().to_string();
    return std::move(*reward);
  }
};

TEST_F(TrainingFeedTest, ABatchIsThatOfARoundOfGenerationUnderItsOwnKey) {
  const auto plain = read({});
  ASSERT_TRUE(plain.ok()) << plain.status().to_string();
  EXPECT_EQ(plain->batch_prompts, 4);
  EXPECT_EQ(plain->batch_key, "data.train_batch_size");
  EXPECT_EQ(plain->workers, 2);
  EXPECT_GT(plain->context, 0);
  EXPECT_GT(plain->vocabulary, 0);
  const auto filtered = read({"algorithm.filter_groups.enable=true", "data.gen_batch_size=8",
                              "actor_rollout_ref.rollout.n=2"});
  ASSERT_TRUE(filtered.ok()) << filtered.status().to_string();
  EXPECT_EQ(filtered->batch_prompts, 8);
  EXPECT_EQ(filtered->batch_key, "data.gen_batch_size");
  EXPECT_EQ(filtered->mini_batch_prompts, 4);
}

TEST_F(TrainingFeedTest, SeveralTeachersHaveTheRowsOfTheirColumn) {
  const std::string models = "distillation.teacher_models.";
  const std::vector<std::string> both = {
      "distillation.enabled=true",    "distillation.teacher_key=subject",
      models + "maths.model_path=/m", models + "maths.key=a",
      models + "code.model_path=/c",  models + "code.key=b"};
  const auto options = read(both);
  ASSERT_TRUE(options.ok()) << options.status().to_string();
  EXPECT_EQ(options->teacher_column, "subject");
  EXPECT_EQ(options->teachers, (std::vector<std::string>{"a", "b"}));
  const auto one = read({"distillation.enabled=true", models + "maths.model_path=/m"});
  ASSERT_TRUE(one.ok()) << one.status().to_string();
  EXPECT_TRUE(one->teachers.empty()) << "rows need not say whose they are";
}

TEST_F(TrainingFeedTest, PromptsTravelWithTheirTasksForARewardModelAlone) {
  EXPECT_FALSE(read({})->with_prompts);
  EXPECT_TRUE(read({"reward.reward_model.enable=true", "reward.reward_model.model_path=/judge"})
                  ->with_prompts);
}

TEST_F(TrainingFeedTest, AModelThatIsNotThereIsNamed) {
  const Config config = this->config();
  const auto options = training_feed_options(config, this->options(config), run() / "none", 1);
  EXPECT_NE(options.status().message().find((run() / "none").string()), std::string::npos)
      << options.status().message();
}

TEST_F(TrainingFeedTest, ARowThatTheRewardCannotJudgeIsNamed) {
  const std::string good = R"({"prompt":"ab","answer":"b","data_source":"toy"})";
  const Dataset first = dataset(rows("good.jsonl", good + "\n" + good + "\n"));
  const Dataset second = dataset(
      rows("bad.jsonl", good + "\n" + R"({"prompt":"cd","answer":"d","data_source":"?"})" + "\n"));
  const auto by_source = reward({});
  const std::vector<const Dataset*> only_good{&first}, both{&first, &second};
  EXPECT_TRUE(check_reward_rows(*by_source, only_good).ok());
  support::expect_failure(check_reward_rows(*by_source, both), runtime::ErrorCode::kInvalidArgument,
                          {"bad.jsonl:2", "?"});
  EXPECT_TRUE(check_reward_rows(*reward({"reward.rule=exact"}), both).ok());
}

// A file that is streamed may be larger than memory, and is not read to its end before a run.
TEST_F(TrainingFeedTest, OfStreamedRowsTheFirstAreChecked) {
  const std::string good = R"({"prompt":"ab","answer":"b","data_source":"toy"})";
  const std::string bad = R"({"prompt":"cd","answer":"d","data_source":"?"})";
  std::string text;
  for (std::int64_t row = 0; row < kRowsCheckedMax; ++row) text += good + "\n";
  const std::string late = rows("late.jsonl", text + bad + "\n");
  const Dataset streamed = dataset(late, /*streaming=*/true), in_memory = dataset(late);
  const auto by_source = reward({});
  const std::vector<const Dataset*> cut{&streamed}, whole{&in_memory};
  EXPECT_TRUE(check_reward_rows(*by_source, cut).ok());
  EXPECT_FALSE(check_reward_rows(*by_source, whole).ok());
}

}  // namespace
}  // namespace rl
