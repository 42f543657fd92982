#include "rl/train/rollout_dump.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace rl {
namespace {

class RolloutDumpTest : public ::testing::Test {
 protected:
  RolloutDumpTest() : folder_(std::filesystem::temp_directory_path() / ("starling_dump_" + std::to_string(getpid()))) {}
  ~RolloutDumpTest() override { std::filesystem::remove_all(folder_); }

  std::vector<nlohmann::json> lines(std::int64_t step) const {
    std::vector<nlohmann::json> all;
    std::ifstream in(folder_ / (std::to_string(step) + ".jsonl"));
    for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }

  std::filesystem::path folder_;
};

TEST_F(RolloutDumpTest, HasALineForEachSample) {
  ASSERT_TRUE(write_rollout_dump({folder_ / "deep", 3}, {}).ok());
  ASSERT_TRUE(write_rollout_dump({folder_, 3}, {{{"two\nlines", "\"yes\"", "yes", 0.5}, {}, {{"acc", 1.0}, {"score", 7.0}}}, {{"b", "c", "", 1.0}}}).ok());
  const auto read = lines(3);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0], nlohmann::json({{"input", "two\nlines"}, {"output", "\"yes\""}, {"gts", "yes"}, {"score", 0.5}, {"step", 3}, {"acc", 1.0}}));
}

TEST_F(RolloutDumpTest, TokensOfToolsHaveNoAdvantage) {
  const SampleText sample{.prompt = "a", .response = "bcd", .ground_truth = "", .score = 1, .tokens = {"b", "c", "d"}, .logprobs = {-0.5F, 0, -2.0F}, .mask = {1, 0, 1}};
  ASSERT_TRUE(write_rollout_dump({folder_, 1}, {{sample, {0.25F}}}).ok());
  EXPECT_EQ(lines(1)[0]["advantages"], nlohmann::json({0.25, 0.0, 0.25}));
  EXPECT_EQ(lines(1)[0]["response_mask"], nlohmann::json({1, 0, 1}));
  ASSERT_TRUE(write_rollout_dump({folder_, 1}, {{sample, {0.25F, -0.5F}}}).ok());  // one of each token that is learned
  EXPECT_EQ(lines(1)[0]["advantages"], nlohmann::json({0.25, 0.0, -0.5}));
}

TEST_F(RolloutDumpTest, TokensHaveTheirLogprobsAndTheSamplesAdvantage) {
  const SampleText sample{.prompt = "a", .response = "bc", .ground_truth = "", .score = 1, .tokens = {"b", "c"}, .logprobs = {-0.5F, -2.0F}};
  ASSERT_TRUE(write_rollout_dump({folder_, 1}, {{sample, {0.25F}}}).ok());
  const nlohmann::json expected = {{"input", "a"}, {"output", "bc"}, {"gts", ""}, {"score", 1.0}, {"step", 1}, {"tokens", {"b", "c"}}, {"logprobs", {-0.5, -2.0}}, {"advantages", {0.25, 0.25}}};
  EXPECT_EQ(lines(1), std::vector<nlohmann::json>{expected});
}

TEST_F(RolloutDumpTest, ReplacesUnlessItIsToGoOn) {
  ASSERT_TRUE(write_rollout_dump({folder_, 1}, {{{"a", "", "", 0}}, {{"b", "", "", 0}}}).ok());
  ASSERT_TRUE(write_rollout_dump({folder_, 1}, {{{"c", "", "", 0}}}).ok());
  EXPECT_EQ(lines(1).size(), 1u);
  ASSERT_TRUE(write_rollout_dump({folder_, 1, /*append=*/true}, {{{"d", "", "", 0}}}).ok());
  EXPECT_EQ(lines(1).size(), 2u);
}

TEST_F(RolloutDumpTest, BrokenTextBecomesText) {
  ASSERT_TRUE(write_rollout_dump({folder_, 1}, {{{"\xff", "\xe2\x82", "", 0}}}).ok());
  EXPECT_EQ(lines(1)[0]["input"], "\uFFFD");
}

TEST_F(RolloutDumpTest, NamesAFolderThatCannotBe) {
  std::ofstream(folder_) << "a file";
  const runtime::Status status = write_rollout_dump({folder_, 1}, {});
  EXPECT_NE(status.message().find(folder_.string()), std::string::npos) << status.message();
}

}  // namespace
}  // namespace rl
