#include "rl/reward/sandbox_scorer.h"

#include <gtest/gtest.h>

#include <map>

#include "rl/reward/reward_function.h"
#include "tests/rl/reward/server_fixture.h"

namespace rl {
namespace {

using runtime::ErrorCode;

class SandboxScorerTest : public ServerTest {
 protected:
  SandboxScorerTest() : ServerTest("sandbox_server.py") {}

  SandboxOptions options(const std::string& path = "/run_code") const {
    SandboxOptions options{.url = url(path)};
    options.timeout = std::chrono::seconds(30);
    options.pause = std::chrono::milliseconds(1);
    return options;
  }

  static ScoreRequest request(const std::string& response, const std::string& truth,
                              const std::string& source = "apps") {
    return {.data_source = source,
            .response = response,
            .ground_truth = truth,
            .extra_info = "",
            .where = "t:1"};
  }

  static ScoredBatch score(const SandboxOptions& options,
                           const std::vector<ScoreRequest>& requests) {
    const auto scorer = SandboxScorer::create(options);
    EXPECT_TRUE(scorer.ok()) << scorer.status().to_string();
    auto batch =
        scorer.ok() ? (*scorer)->score(requests) : runtime::Result<ScoredBatch>(ScoredBatch{});
    EXPECT_TRUE(batch.ok()) << batch.status().to_string();
    return batch.value_or(ScoredBatch{});
  }
};

constexpr const char* kDouble =
    R"({"inputs": ["1\n", "2\n", "3\n", "4\n"], "outputs": ["2", "4\n", "6", "9"]})";  // the last
                                                                                       // is wrong

std::string python(const std::string& code) {
  return "Here it is:\n```python\n" + code + "\n```\nThat was it.";
}

TEST(ProgramIn, FindsTheLastPythonBlockElseTheFirstOfAnyKind) {
  EXPECT_EQ(program_in("```python\na\n``` and\n```python\nb\n```"), "\nb\n");
  EXPECT_EQ(program_in("```cpp\na\n```\n```python\nb\n```"), "\nb\n");
  EXPECT_EQ(program_in("x\n```\nprint(1)\n```\n```\nprint(2)\n```"), "\nprint(1)\n");
  EXPECT_EQ(program_in("```py\nprint(1)\n```"), "print(1)\n");
  EXPECT_EQ(program_in("```x = 1\nprint(x)```"), "x = 1\nprint(x)");
  EXPECT_EQ(program_in("```python\nprint(1)"), "\nprint(1)") << "cut off: tried all the same";
  EXPECT_EQ(program_in("print(1)"), std::nullopt);
  EXPECT_EQ(program_in(""), std::nullopt);
}

TEST(TestCases, AreReadAsVerlWritesThem) {
  const auto cases = TestCases::parse(R"({"inputs": ["1", 2, null], "outputs": ["3", 4, null]})");
  ASSERT_TRUE(cases.ok()) << cases.status().message();
  ASSERT_EQ(cases->cases.size(), 3U);
  EXPECT_EQ(cases->cases[1].input, "2");
  EXPECT_EQ(cases->cases[1].output, "4");
  EXPECT_EQ(cases->cases[2].output, std::nullopt);
  const auto asserts =
      TestCases::parse(R"({"assert_case": ["assert f(1) == 2", "assert f(2) == 4"]})");
  ASSERT_TRUE(asserts.ok());
  EXPECT_EQ(asserts->cases[1].code_after, "assert f(2) == 4");
  EXPECT_EQ(TestCases::parse(R"({"inputs": ["1"], "outputs": ["2"], "fn_name": "f"})")->function,
            "f");
  for (const auto& [text, why] : std::map<std::string, std::string>{
           {"nothing", "no JSON object"},
           {"[1]", "no JSON object"},
           {"{}", "no list of inputs"},
           {R"({"inputs": ["1"]})", "no list of outputs"},
           {R"({"inputs": [], "outputs": []})", "no case"},
           {R"({"inputs": ["1"], "outputs": []})", "0 outputs for 1 cases"},
           {R"({"inputs": ["1"], "outputs": ["1"], "assert_case": ["a", "b"]})",
            "1 inputs for 2 cases"}}) {
    const auto status = TestCases::parse(text).status();
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument) << text;
    EXPECT_NE(status.message().find(why), std::string::npos) << status.message();
  }
}

TEST_F(SandboxScorerTest, AProgramScoresTheShareOfCasesThatItPasses) {
  const ScoredBatch batch = score(
      options(),
      {request(python("print(2 * int(input()))"), kDouble), request(python("print(7)"), kDouble),
       request(python("print(2 * int(input())"), kDouble),  // does not compile
       request("no program", kDouble),
       request(python("x = int(input())\nif x > 2: raise ValueError\nprint(2 * x)"), kDouble),
       request(
           python("class Solution:\n  def f(self, a, b): return [a, b]"),
           R"({"inputs": ["1\n[2]", "3\n4"], "outputs": ["[1, [2]]", "[3, 5]"], "fn_name": "f"})"),
       request(python("def f(x): return x > 1"),
               R"({"inputs": ["2"], "outputs": ["true"], "fn_name": "f"})"),
       request(python("def f(x): return 2 * x"),
               R"({"assert_case": ["assert f(1) == 2", "assert f(2) == 5"]})")});
  ASSERT_EQ(batch.scores.size(), 8U);
  const double expected[] = {0.75, 0, 0, 0, 0.5, 0.5, 1, 0.5};
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(batch.scores[i].ok()) << batch.scores[i].message;
    EXPECT_EQ(batch.scores[i].value, expected[i]) << i;
  }
  EXPECT_EQ(batch.counts.errors + batch.counts.timeouts + batch.counts.retries, 0);
}

TEST_F(SandboxScorerTest, OnlyTheFirstTenCasesCount) {
  std::string inputs, outputs;
  for (int i = 0; i < 12; ++i) {
    inputs += (i > 0 ? ", \"" : "\"") + std::to_string(i) + "\"";
    outputs += (i > 0 ? ", \"" : "\"") + std::to_string(i < 8 ? i : -1) + "\"";
  }
  EXPECT_EQ(
      score(options(), {request(python("print(input())"),
                                "{\"inputs\": [" + inputs + "], \"outputs\": [" + outputs + "]}")})
          .scores.at(0)
          .value,
      0.8);
}

TEST_F(SandboxScorerTest, AProgramThatRunsForEverFails) {
  SandboxOptions quick = options();
  quick.timeout = std::chrono::seconds(1);
  const ScoredBatch batch =
      score(quick, {request(python("while True: pass"), R"({"inputs": [""], "outputs": [""]})")});
  EXPECT_TRUE(batch.scores.at(0).ok());
  EXPECT_EQ(batch.scores[0].value, 0);
}

TEST_F(SandboxScorerTest, NoMoreProgramsRunAtOnceThanMay) {
  SandboxOptions two = options("/pairs");
  two.concurrency = 2;
  std::vector<ScoreRequest> requests(
      8, request(python("x = 1"), R"({"inputs": [""], "outputs": [""]})"));
  (void)score(two, requests);
  EXPECT_EQ(
      score(two, {request(python("most_at_once = 1"), R"({"inputs": [""], "outputs": ["2"]})")})
          .scores.at(0)
          .value,
      1);
}

TEST_F(SandboxScorerTest, AServerWithoutAVerdictLeavesNoScore) {
  const auto of = [&](const std::string& path, const std::string& code = "print(1)") {
    return score(options(path), {request(python(code), R"({"inputs": [""], "outputs": ["1"]})")});
  };
  const ScoredBatch busy = of("/busy");
  EXPECT_EQ(busy.scores.at(0).value, 1) << busy.scores[0].message;
  EXPECT_EQ(busy.counts.retries, 2);
  const ScoredBatch broken = of("/broken", "print('trouble')");
  EXPECT_EQ(broken.scores.at(0).failure, ScoreFailure::kError);
  EXPECT_NE(broken.scores[0].message.find("SandboxError, no room for it"), std::string::npos)
      << broken.scores[0].message;
  EXPECT_EQ(broken.counts.errors, 3);
  const ScoredBatch refused = of("/refused");
  EXPECT_EQ(refused.scores.at(0).failure, ScoreFailure::kError);
  EXPECT_NE(refused.scores[0].message.find("answered 400: no such language"), std::string::npos);
  EXPECT_EQ(refused.counts.retries, 0) << "it would say the same again";
  SandboxOptions silent = options("/hang");
  silent.timeout = silent.on_the_way = std::chrono::milliseconds(300);
  silent.retries = 1;
  const ScoredBatch hung =
      score(silent, {request(python("print(1)"), R"({"inputs": [""], "outputs": ["1"]})")});
  EXPECT_EQ(hung.scores.at(0).failure, ScoreFailure::kTimeout);
  EXPECT_EQ(hung.counts.timeouts, 2);
}

TEST_F(SandboxScorerTest, ServersThatCannotBeUsedAreFoundAtOnce) {
  for (const char* path : {"/text", "/other"}) {
    const auto status = SandboxScorer::create(options(path)).status();
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(status.message().find("is the path right?"), std::string::npos) << status.message();
  }
  SandboxOptions unreachable = options();
  unreachable.url = "http://127.0.0.1:1/run_code";
  unreachable.retries = 0;
  const auto status = SandboxScorer::create(unreachable).status();
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_NE(status.message().find("127.0.0.1:1"), std::string::npos) << status.message();
  unreachable.url = "localhost";
  EXPECT_EQ(SandboxScorer::create(unreachable).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(SandboxScorerTest, OfAMixedDataSetProgramsGoThereAndTheRestByRule) {
  const auto config = Config::load({std::nullopt,
                                    {"reward_model.sandbox_fusion.url=" + url("/run_code"),
                                     "reward.sandbox_fusion.max_concurrent=4"}});
  ASSERT_TRUE(config.ok()) << config.status().message();
  const auto reward = RewardFunction::from_config(*config, 1, /*start=*/true);
  ASSERT_TRUE(reward.ok()) << reward.status().message();
  const std::vector<ScoreRequest> requests = {
      request("#### 5", "5", "openai/gsm8k"),
      request(python("print(1)"), R"({"inputs": ["", ""], "outputs": ["1", "2"]})", "codecontests"),
      request("#### 6", "5", "openai/gsm8k")};
  const std::vector<std::int64_t> lengths = {3, 3, 3};
  const auto report = (*reward)->score(requests, lengths);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->scores, (std::vector<double>{1, 0.5, 0}));

  const auto unstarted = RewardFunction::from_config(*config, 1, /*start=*/false);
  ASSERT_TRUE(unstarted.ok());
  EXPECT_TRUE((*unstarted)->check_row(requests[1]).ok());
  EXPECT_NE((*unstarted)->check_row(request("", "what", "taco")).message().find("no JSON object"),
            std::string::npos);
  const auto without =
      RewardFunction::from_config(*Config::load({std::nullopt, {}}), 1, /*start=*/false);
  ASSERT_TRUE(without.ok());
  EXPECT_NE((*without)->check_row(requests[1]).message().find("set reward.sandbox_fusion.url"),
            std::string::npos);
}

}  // namespace
}  // namespace rl
