#include "rl/run/rl/rollout_dump.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/file_size_limit.h"

namespace rl {
namespace {

class RolloutDumpTest : public ::testing::Test {
 protected:
  RolloutDumpTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("starling_dump_" + std::to_string(getpid()))) {}
  ~RolloutDumpTest() override { std::filesystem::remove_all(folder_); }

  std::vector<nlohmann::json> lines(std::int64_t step) const {
    std::vector<nlohmann::json> all;
    std::ifstream in(folder_ / (std::to_string(step) + ".jsonl"));
    for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }

  void write(std::int64_t step, const std::vector<DumpedSample>& samples, bool append = false) {
    dumper_.write({folder_, step, append}, samples);
  }

  std::filesystem::path folder_;
  RolloutDumper dumper_;
};

TEST_F(RolloutDumpTest, HasALineForEachSample) {
  dumper_.write({folder_ / "deep", 3}, {});
  EXPECT_TRUE(std::filesystem::exists(folder_ / "deep" / "3.jsonl"));
  write(3, {{{"two\nlines", "\"yes\"", "yes", 0.5}, {}, {{"acc", 1.0}, {"score", 7.0}}},
            {{"b", "c", "", 1.0}}});
  const auto read = lines(3);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0], nlohmann::json({{"input", "two\nlines"},
                                     {"output", "\"yes\""},
                                     {"gts", "yes"},
                                     {"score", 0.5},
                                     {"step", 3},
                                     {"acc", 1.0}}));
}

TEST_F(RolloutDumpTest, GroundTruthsAreAsTheDataHasThem) {
  SampleText sample{.prompt = "a", .response = "b", .ground_truth = R"(["c"])", .score = 1};
  write(1, {{sample}});
  sample.ground_truth_is_json = true;
  write(2, {{sample}});
  EXPECT_EQ(lines(1).at(0)["gts"], R"(["c"])");
  EXPECT_EQ(lines(2).at(0)["gts"], nlohmann::json::array({"c"}));
}

TEST_F(RolloutDumpTest, TokensOfToolsHaveNoAdvantage) {
  const SampleText sample{.prompt = "a",
                          .response = "bcd",
                          .ground_truth = "",
                          .score = 1,
                          .tokens = {"b", "c", "d"},
                          .logprobs = {-0.5F, 0, -2.0F},
                          .mask = {1, 0, 1}};
  write(1, {{sample, {0.25F}}});
  EXPECT_EQ(lines(1)[0]["advantages"], nlohmann::json({0.25, 0.0, 0.25}));
  EXPECT_EQ(lines(1)[0]["response_mask"], nlohmann::json({1, 0, 1}));
  write(1, {{sample, {0.25F, -0.5F}}});  // one of each token that is learned
  EXPECT_EQ(lines(1)[0]["advantages"], nlohmann::json({0.25, 0.0, -0.5}));
}

TEST_F(RolloutDumpTest, TokensHaveTheirLogprobsAndTheSamplesAdvantage) {
  const SampleText sample{.prompt = "a",
                          .response = "bc",
                          .ground_truth = "",
                          .score = 1,
                          .tokens = {"b", "c"},
                          .logprobs = {-0.5F, -2.0F}};
  write(1, {{sample, {0.25F}}});
  const nlohmann::json expected = {{"input", "a"},
                                   {"output", "bc"},
                                   {"gts", ""},
                                   {"score", 1.0},
                                   {"step", 1},
                                   {"tokens", {"b", "c"}},
                                   {"logprobs", {-0.5, -2.0}},
                                   {"advantages", {0.25, 0.25}}};
  EXPECT_EQ(lines(1), std::vector<nlohmann::json>{expected});
}

TEST_F(RolloutDumpTest, ReplacesUnlessItIsToGoOn) {
  write(1, {{{"a", "", "", 0}}, {{"b", "", "", 0}}});
  write(1, {{{"c", "", "", 0}}});
  EXPECT_EQ(lines(1).size(), 1u);
  write(1, {{{"d", "", "", 0}}}, /*append=*/true);
  EXPECT_EQ(lines(1).size(), 2u);
}

TEST_F(RolloutDumpTest, WhatAFullDiskDoesNotTakeIsWrittenLater) {
  const auto sample = [](const std::string& text) {
    return std::vector<DumpedSample>{{{text, "", "", 0}}};
  };
  write(1, sample("a"));
  const std::size_t bytes = encode_samples(1, sample("a")).size();
  {
    const support::FileSizeLimit room(bytes + 5);
    write(1, sample("b"), /*append=*/true);
    write(2, sample(std::string(bytes, 'c')));
    EXPECT_EQ(lines(1).size(), 1u) << "nothing in part";
    EXPECT_FALSE(std::filesystem::exists(folder_ / "2.jsonl"));
    EXPECT_NE(dumper_.flush().message().find("1.jsonl"), std::string::npos)
        << dumper_.flush().message();
  }
  write(3, sample("d"));
  EXPECT_TRUE(dumper_.flush().ok());
  ASSERT_EQ(lines(1).size(), 2u);
  EXPECT_EQ(lines(1)[1]["input"], "b");
  EXPECT_EQ(lines(2).size(), 1u);
  EXPECT_EQ(lines(3).size(), 1u);
}

TEST_F(RolloutDumpTest, BrokenTextBecomesText) {
  write(1, {{{"\xff", "\xe2\x82", "", 0}}});
  EXPECT_EQ(lines(1)[0]["input"], "\uFFFD");
}

TEST_F(RolloutDumpTest, NamesAFolderThatCannotBe) {
  std::ofstream(folder_) << "a file";
  write(1, {});
  const runtime::Status status = dumper_.flush();
  EXPECT_NE(status.message().find(folder_.string()), std::string::npos) << status.message();
}

}  // namespace
}  // namespace rl
