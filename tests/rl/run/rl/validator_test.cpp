#include "rl/run/rl/validator.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <string>

#include "tests/rl/run/fakes.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

// Two rounds of two prompts with two answers each.
class ValidatorTest : public ::testing::Test {
 protected:
  Validator validator(std::int64_t shown_samples, SampleDump& dump) {
    return {[this]() -> runtime::Result<std::vector<StepPrompts>> {
              if (!has_rows_) return runtime::not_found("no such file");
              return std::vector<StepPrompts>{fake_prompts(2, 1), fake_prompts(2, 1)};
            },
            generate_, reward_, dump, shown_samples};
  }

  FakeBatches batches_;
  FakeGenerate generate_{batches_, 1, 2};
  FakeScore reward_{batches_};
  SampleDump no_dump_{{}, reward_};
  support::TemporaryFolder folder_;
  bool has_rows_ = true;
};

TEST_F(ValidatorTest, ScoresOfAllRoundsMakeOneMean) {
  reward_.of = [](std::int64_t prompt, std::int64_t sample) {
    return static_cast<double>(prompt + sample);
  };
  const auto metrics = validator(0, no_dump_).validate(1);
  ASSERT_TRUE(metrics.ok()) << metrics.status().message();
  EXPECT_EQ(metrics->at("val-core/toy/reward/mean@2"), 1.0);
  EXPECT_EQ(metrics->at("val-core/toy/reward/best@2/mean"), 1.25);
}

TEST_F(ValidatorTest, AnAnswerWithoutAScoreIsLeftOut) {
  reward_.of = [](std::int64_t prompt, std::int64_t sample) {
    return prompt == 0 && sample == 0 ? std::numeric_limits<double>::quiet_NaN()
                                      : static_cast<double>(sample);
  };
  const auto metrics = validator(0, no_dump_).validate(1);
  ASSERT_TRUE(metrics.ok()) << metrics.status().message();
  EXPECT_EQ(metrics->at("val-core/toy/reward/mean@2"), 0.5) << "of the other prompt";
  EXPECT_EQ(metrics->at("val-aux/toy/reward/mean@1"), 1.0);
}

TEST_F(ValidatorTest, NumbersOfScorersHaveMeansOfTheirOwn) {
  reward_.extra = {"format"};
  const auto metrics = validator(0, no_dump_).validate(1);
  ASSERT_TRUE(metrics.ok()) << metrics.status().message();
  EXPECT_EQ(metrics->at("val-aux/toy/format/mean@2"), 10.5);
}

TEST_F(ValidatorTest, KeepsTextsOfTheFirstValidationAndOfTheLast) {
  Validator validator = this->validator(5, no_dump_);
  for (const double score : {1.0, 2.0, 3.0}) {
    reward_.of = [score](std::int64_t, std::int64_t) { return score; };
    ASSERT_TRUE(validator.validate(1).ok());
  }
  ASSERT_EQ(validator.first_samples().size(), 5u) << "of eight, over both rounds";
  ASSERT_EQ(validator.last_samples().size(), 5u);
  EXPECT_EQ(validator.first_samples().back().score, 1.0);
  EXPECT_EQ(validator.last_samples().back().score, 3.0);
}

TEST_F(ValidatorTest, AllRoundsOfAStepAreInOneFile) {
  SampleDump dump(folder_.path(), reward_);
  Validator validator = this->validator(0, dump);
  ASSERT_TRUE(validator.validate(3).ok());
  ASSERT_TRUE(validator.validate(3).ok());
  std::ifstream in(folder_.file("3.jsonl"));
  int lines = 0;
  for (std::string line; std::getline(in, line);) ++lines;
  EXPECT_EQ(lines, 8) << "another validation of that step begins the file again";
}

TEST_F(ValidatorTest, RowsThatCannotBeReadAreTheError) {
  has_rows_ = false;
  Validator validator = this->validator(1, no_dump_);
  EXPECT_EQ(validator.validate(1).status().code(), runtime::ErrorCode::kNotFound);
  EXPECT_TRUE(validator.first_samples().empty());
}

}  // namespace
}  // namespace rl
