#include "rl/reward/reward_function.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;
using runtime::Result;

Result<std::unique_ptr<RewardFunction>> make(const std::vector<std::string>& overrides,
                                             bool start = true) {
  const auto config = Config::load({std::nullopt, overrides});
  if (!config.ok()) return config.status();
  return RewardFunction::from_config(*config, 1, start);
}

ScoreRequest request(const std::string& response, const std::string& truth,
                     const std::string& source = "x") {
  return {.data_source = source,
          .response = response,
          .ground_truth = truth,
          .extra_info = "",
          .where = "t.jsonl:1"};
}

Result<RewardReport> score(RewardFunction& reward, const std::vector<ScoreRequest>& requests,
                           std::int64_t tokens = 1) {
  return reward.score(requests, std::vector<std::int64_t>(requests.size(), tokens));
}

fs::path write_python(const std::string& body) {
  const fs::path file = fs::temp_directory_path() /
                        ("starling_reward_function_" + std::to_string(::getpid()) + ".py");
  std::ofstream(file)
      << "def compute_score(data_source, solution_str, ground_truth, extra_info, **kwargs):\n"
      << body;
  return file;
}

TEST(RewardFunction, RulesByDataSourceOrForAll) {
  const auto by_source = make({});
  ASSERT_TRUE(by_source.ok()) << by_source.status().to_string();
  EXPECT_EQ(score(**by_source, {request("#### 4", "4", "openai/gsm8k"), request("ab", "ac", "toy")})
                ->scores,
            (std::vector<double>{1, 0.5}));
  EXPECT_NE((*by_source)->check_row(request("", "1", "mine")).message().find("set reward.rule"),
            std::string::npos);
  const auto fixed = make({"reward.rule=number", "reward.rule_kwargs.tolerance=0.1"});
  ASSERT_TRUE(fixed.ok()) << fixed.status().to_string();
  EXPECT_EQ(score(**fixed, {request("1.05", "1", "mine")})->scores, std::vector<double>{1});
  EXPECT_NE((*fixed)->check_row(request("", "abc")).message().find("not a number"),
            std::string::npos);
  EXPECT_NE(
      make({"reward.rule=exakt"}).status().message().find("reward.rule: there is no rule 'exakt'"),
      std::string::npos);
}

// Stands for a model: the score of a response is its length.
class Lengths : public Scorer {
 public:
  Result<ScoredBatch> score(std::span<const ScoreRequest> requests) override {
    ScoredBatch batch;
    for (const ScoreRequest& request : requests)
      batch.scores.push_back({.value = static_cast<double>(request.response.size()),
                              .failure = ScoreFailure::kNone,
                              .message = "",
                              .extra = {}});
    return batch;
  }
};

TEST(RewardFunction, ARewardModelScoresAloneOrInAMixture) {
  std::vector<std::string> asked;
  const RewardModelLoader load = [&asked](const fs::path& model,
                                          bool start) -> Result<std::unique_ptr<Scorer>> {
    asked.push_back(model.string() + (start ? "" : ", not started"));
    return std::unique_ptr<Scorer>(std::make_unique<Lengths>());
  };
  const auto make_with = [&load](const std::vector<std::string>& overrides, bool start) {
    return RewardFunction::from_config(*Config::load({std::nullopt, overrides}), 1, start, load);
  };
  // By verl's older names too.
  for (const char* prefix : {"reward.reward_model.model_path=", "reward_model.model.path="}) {
    const auto alone = make_with({"reward_model.enable=true", prefix + std::string("/m")}, true);
    ASSERT_TRUE(alone.ok()) << alone.status().to_string();
    EXPECT_EQ(score(**alone, {request("abc", "")})->scores, std::vector<double>{3});
  }
  const auto mixed =
      make_with({"reward.mixture=[{rule: contains, weight: 2}, {model: /m, weight: 0.5}]"}, true);
  ASSERT_TRUE(mixed.ok()) << mixed.status().to_string();
  EXPECT_EQ(score(**mixed, {request("abcd", "b"), request("ab", "x")})->scores,
            (std::vector<double>{4, 1}));
  EXPECT_TRUE(make_with({"reward.mixture=[{model: /other}]"}, false).ok());
  EXPECT_EQ(asked, (std::vector<std::string>{"/m", "/m", "/m", "/other, not started"}));

  const auto message = [&](const std::vector<std::string>& overrides) {
    return make_with(overrides, false).status().message();
  };
  EXPECT_NE(
      message({"reward.reward_model.enable=true"}).find("needs reward.reward_model.model_path"),
      std::string::npos);
  EXPECT_NE(message({"reward.reward_model.enable=true", "reward.reward_model.model_path=/m",
                     "reward.rule=exact"})
                .find("mix them by reward.mixture"),
            std::string::npos);
  EXPECT_NE(message({"reward.reward_model.enable=true", "reward.reward_model.model_path=/m",
                     "custom_reward_function.path=f.py"})
                .find("generative reward model"),
            std::string::npos);
  EXPECT_EQ(make({"reward.mixture=[{model: /m}]"}).status().code(), ErrorCode::kUnimplemented)
      << "no loader";
  // A path that nothing enables is verl's way to leave it in a script.
  EXPECT_TRUE(make({"reward.reward_model.model_path=/m"}).ok());
}

TEST(RewardFunction, MixesAndReportsItsParts) {
  const auto reward =
      make({"reward.mixture=[{rule: gsm8k, weight: 0.9, method: flexible}, {rule: format, weight: "
            "0.1}]"});
  ASSERT_TRUE(reward.ok()) << reward.status().to_string();
  const auto report = score(**reward, {request("<think>x</think> 4", "4"), request("4", "4"),
                                       request("<think>x</think> 5", "4"), request("5", "4")});
  ASSERT_TRUE(report.ok());
  const std::vector<double> expected{1.0, 0.9, 0.1, 0.0};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_DOUBLE_EQ(report->scores[i], expected[i]);
  const auto metrics = reward_metrics(std::vector<RewardReport>{*report, *report});
  EXPECT_DOUBLE_EQ(metrics.at("reward/gsm8k"), 0.5);
  EXPECT_DOUBLE_EQ(metrics.at("reward/format"), 0.5);
  EXPECT_EQ(metrics.at("reward/failed"), 0);
}

TEST(RewardFunction, MixturesThatCannotBeAreRefused) {
  for (const auto& [mixture, why] : {std::pair{"[]", "expected a list"},
                                     {"5", "expected a list"},
                                     {"[{weight: 1}]", "names no rule"},
                                     {"[{rule: exact, weight: x}]", "weight"},
                                     {"[{rule: exact}, {rule: exact}]", "already"},
                                     {"[{rule: exact, http: y}]", "one of rule"},
                                     {"[{rule: nope}]", "no rule 'nope'"},
                                     {"[{library: a.so, pattern: b}]", "'pattern'"}}) {
    const auto reward = make({std::string("reward.mixture=") + mixture}, false);
    ASSERT_FALSE(reward.ok()) << mixture;
    EXPECT_NE(reward.status().message().find(why), std::string::npos) << reward.status().message();
  }
  EXPECT_NE(make({"reward.rule=exact", "reward.shared_library.path=a.so"}, false)
                .status()
                .message()
                .find("both define the score"),
            std::string::npos);
}

// The figures of DAPO's paper: 20,480 tokens, of which the last 4,096 are punished.
TEST(RewardFunction, PunishesLengthAsDapo) {
  const auto reward = make(
      {"reward.rule=exact", "reward_model.reward_manager=dapo", "data.max_response_length=20480",
       "reward_model.overlong_buffer.enable=True", "reward_model.overlong_buffer.len=4096",
       "reward_model.overlong_buffer.penalty_factor=1.0",
       "+reward_model.reward_kwargs.overlong_buffer_cfg.log=True"});
  ASSERT_TRUE(reward.ok()) << reward.status().to_string();
  for (const auto& [tokens, expected] :
       {std::pair<std::int64_t, double>{100, 1.0}, {16384, 1.0}, {18432, 0.5}, {20480, 0.0}}) {
    EXPECT_DOUBLE_EQ(score(**reward, {request("a", "a")}, tokens)->scores[0], expected) << tokens;
  }
  const auto metrics =
      reward_metrics(std::vector<RewardReport>{*score(**reward, {request("a", "a")}, 18432)});
  EXPECT_DOUBLE_EQ(metrics.at("reward/overlong_reward"), -0.5);
  EXPECT_DOUBLE_EQ(metrics.at("reward/overlong"), 1.0);
  EXPECT_NE(make({"reward_model.overlong_buffer.enable=True",
                  "reward_model.overlong_buffer.len=4096", "data.max_response_length=100"})
                .status()
                .message()
                .find("at most"),
            std::string::npos);
  EXPECT_NE(
      make({"reward_model.overlong_buffer.enable=True"}).status().message().find("at least 1"),
      std::string::npos);
}

TEST(RewardFunction, CallsAUsersFileByOldAndNewNames) {
  const fs::path file =
      write_python("  return {'score': len(solution_str) + kwargs.get('bonus', 0), 'acc': 1}\n");
  for (const char* section : {"custom_reward_function", "reward.custom_reward_function"}) {
    const auto reward = make({section + std::string(".path=") + file.string(),
                              section + std::string(".name=compute_score"),
                              "+" + std::string(section) + ".reward_kwargs.bonus=0.5"});
    ASSERT_TRUE(reward.ok()) << reward.status().to_string();
    const auto report = score(**reward, {request("abc", "")});
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->scores[0], 3.5);
    EXPECT_EQ(reward_metrics(std::vector<RewardReport>{*report}).at("reward/acc"), 1);
  }
  EXPECT_EQ(make({"custom_reward_function.path=/none/reward.py"}).status().code(),
            ErrorCode::kNotFound);
  EXPECT_NE(
      make({"custom_reward_function.path=" + file.string(), "custom_reward_function.name=other"})
          .status()
          .message()
          .find("no function 'other'"),
      std::string::npos);
  fs::remove(file);
}

// As verl's reward loop does.
TEST(RewardFunction, AwaitsWhatAFunctionReturns) {
  const fs::path file =
      fs::temp_directory_path() / ("starling_async_" + std::to_string(getpid()) + ".py");
  std::ofstream(file) << R"python(
import asyncio, functools
seen = None
def until_the_loop_comes_round(value=None):
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, value)
    return future
async def number(data_source, solution_str, ground_truth, extra_info=None, bonus=0):
    global seen
    loop = asyncio.get_running_loop()
    assert seen in (None, loop), "a loop for each call"
    seen = loop
    await until_the_loop_comes_round()
    return len(solution_str) + bonus
async def dictionary(solution_str, **rest):
    inner = await asyncio.gather(*(number(solution_str=solution_str, **rest) for _ in range(3)))
    return {"score": sum(inner), "acc": 1}
class Method:
    async def __call__(self, **arguments): return await number(**arguments)
method = Method()
plain = lambda **arguments: number(**arguments)
partial = functools.partial(number, bonus=2)
def runs_its_own(**arguments): return asyncio.run(dictionary(**arguments))["score"] if seen is None else 3.0
def task(**arguments): return asyncio.create_task(number(**arguments))
def future(**arguments): return asyncio.ensure_future(number(**arguments))
class Awaitable:
    def __await__(self): return (yield from until_the_loop_comes_round(1.5).__await__())
def own(**arguments): return Awaitable()
async def lists(data_sources, solution_strs, ground_truths, extra_infos):
    return [len(text) for text in solution_strs]
def list_of(data_sources, solution_strs, ground_truths, extra_infos):
    return [number(None, text, None) for text in solution_strs]
async def fails(**arguments):
    await until_the_loop_comes_round()
    raise ValueError("no answer")
async def hangs(**arguments): await asyncio.Event().wait()
async def generator(**arguments): yield 1.0
)python";
  const auto scored = [&](const std::string& name, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"custom_reward_function.path=" + file.string(),
                             "custom_reward_function.name=" + name, "reward.retries=0"});
    const auto reward = make(more);
    EXPECT_TRUE(reward.ok()) << name << ": " << reward.status().to_string();
    const auto report = score(**reward, {request("abc", ""), request("abcd", "")});
    EXPECT_TRUE(report.ok()) << name << ": " << report.status().to_string();
    return report.ok() ? *report : RewardReport{};
  };
  for (const char* name : {"number", "method", "plain", "task", "future"})
    EXPECT_EQ(scored(name).scores, (std::vector<double>{3, 4})) << name;
  EXPECT_EQ(scored("dictionary").scores, (std::vector<double>{9, 12}));
  EXPECT_EQ(scored("partial").scores, (std::vector<double>{5, 6}));
  EXPECT_EQ(scored("own").scores, (std::vector<double>{1.5, 1.5}));
  EXPECT_EQ(scored("runs_its_own").left_out, (std::vector<std::uint8_t>{0, 0}));
  for (const char* name : {"lists", "list_of"})
    EXPECT_EQ(scored(name, {"reward_model.reward_manager=batch"}).scores,
              (std::vector<double>{3, 4}))
        << name;
  for (const char* name : {"fails", "generator"})
    EXPECT_EQ(scored(name).left_out, (std::vector<std::uint8_t>{1, 1})) << name;
  EXPECT_EQ(scored("hangs", {"reward.timeout=1"}).left_out, (std::vector<std::uint8_t>{1, 1}));
  fs::remove(file);
}

// As verl's batch reward manager calls it.
TEST(RewardFunction, CallsAFunctionOfLists) {
  const fs::path file =
      fs::temp_directory_path() / ("starling_lists_" + std::to_string(getpid()) + ".py");
  std::ofstream(file)
      << "def compute_score(data_sources, solution_strs, ground_truths, extra_infos, bonus=0):\n"
         "  assert len(data_sources) == len(extra_infos)\n"
         "  if solution_strs == ['none']: return 1.0\n"
         "  return [{'score': len(text) + bonus, 'acc': text == truth} for text, truth in "
         "zip(solution_strs, ground_truths)]\n";
  const auto reward =
      make({"custom_reward_function.path=" + file.string(), "reward_model.reward_manager=batch",
            "+custom_reward_function.reward_kwargs.bonus=0.5", "reward.retries=0"});
  ASSERT_TRUE(reward.ok()) << reward.status().to_string();
  const auto report =
      score(**reward, {request("abc", "abc"), request("none", ""), request("x", "y")});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->left_out, (std::vector<std::uint8_t>{0, 1, 0})) << "a number is no list";
  EXPECT_EQ(report->scores, (std::vector<double>{3.5, 0, 1.5}));
  EXPECT_EQ(reward_metrics(std::vector<RewardReport>{*report}).at("reward/acc"), 0.5);
  fs::remove(file);
}

// What is counted of calls keeps its name, and a number that no float holds costs nothing but
// itself.
TEST(RewardFunction, NumbersOfAFileThatCannotKeepTheirName) {
  const fs::path file = write_python(
      "  return {'score': 1, 'timeouts': 0.5, 'failed': 3, 'huge': 10 ** 400, 'acc': 1}\n");
  const auto reward = make({"custom_reward_function.path=" + file.string()});
  ASSERT_TRUE(reward.ok()) << reward.status().to_string();
  const auto report = score(**reward, {request("a", ""), request("b", "")});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  const auto metrics = reward_metrics(std::vector<RewardReport>{*report});
  EXPECT_EQ(metrics.at("reward/timeouts"), 0);
  EXPECT_EQ(metrics.at("reward/failed"), 0);
  EXPECT_EQ(metrics.at("reward/scorer/timeouts"), 0.5);
  EXPECT_EQ(metrics.at("reward/scorer/failed"), 3);
  EXPECT_EQ(metrics.at("reward/acc"), 1);
  EXPECT_FALSE(metrics.contains("reward/huge"));
  fs::remove(file);
}

TEST(RewardFunction, SamplesWithoutAScoreAreLeftOutOrEndTheRun) {
  const fs::path file = write_python("  return float(solution_str)\n");
  const std::vector<std::string> overrides{"custom_reward_function.path=" + file.string(),
                                           "reward.retries=0"};
  const auto reward = make(overrides);
  ASSERT_TRUE(reward.ok()) << reward.status().to_string();
  const auto report =
      score(**reward, {request("1", ""), request("x", ""), request("nan", ""), request("2", "")});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->left_out, (std::vector<std::uint8_t>{0, 1, 1, 0}));
  EXPECT_EQ(report->scores, (std::vector<double>{1, 0, 0, 2}));
  const auto metrics = reward_metrics(std::vector<RewardReport>{*report});
  EXPECT_EQ(metrics.at("reward/failed"), 2);
  EXPECT_EQ(metrics.at("reward/errors"), 1);
  const auto none = score(**reward, std::vector<ScoreRequest>(8, request("x", "")));
  EXPECT_EQ(none.status().code(), ErrorCode::kTaskFailed);
  EXPECT_NE(none.status().message().find("could not convert string to float"), std::string::npos)
      << none.status().message();

  std::vector<std::string> strict = overrides;
  strict.push_back("reward.on_failure=error");
  const auto ends = make(strict);
  ASSERT_TRUE(ends.ok());
  const auto ended = score(**ends, {request("1", ""), request("nan", "")});
  EXPECT_EQ(ended.status().code(), ErrorCode::kTaskFailed);
  EXPECT_NE(ended.status().message().find("t.jsonl:1"), std::string::npos);
  EXPECT_NE(ended.status().message().find("no finite number"), std::string::npos)
      << ended.status().message();
  fs::remove(file);
}

TEST(RewardFunction, LimitsAreChecked) {
  for (const char* wrong :
       {"reward.num_workers=0", "reward.timeout=0", "reward.timeout=-1", "reward.retries=-1",
        "reward.memory_limit_mb=-1", "reward.on_failure=maybe", "reward.timeout=soon"}) {
    EXPECT_FALSE(make({wrong}, false).ok()) << wrong;
  }
}

}  // namespace
}  // namespace rl
