// Conversations with a model that follows a script, and with tools that are real processes.
#include "rl/agent/agent_loop.h"

#include <algorithm>
#include <optional>

#include "rl/data/prompt_builder.h"
#include "rl/feed/prompt_feed.h"
#include "tests/rl/agent/agent_fixture.h"
#include "tests/rl/agent/scripted_turns.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

std::string call(const std::string& name, const std::string& arguments) {
  return "<tool_call>{\"name\": \"" + name + "\", \"arguments\": " + arguments + "}</tool_call>";
}

class AgentLoopTest : public AgentTest {
 protected:
  std::unique_ptr<AgentLoop> loop(const AgentOptions& options) const {
    auto text = TurnText::create(tokenizer(), "", ordered_json::object());
    EXPECT_TRUE(text.ok()) << text.status().to_string();
    auto made = AgentLoop::create(options, std::move(*text));
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return std::move(*made);
  }

  PromptBatch prompts(const std::vector<std::string>& questions,
                      const ordered_json& extra = nullptr, const std::string& agent = "") const {
    PromptBatch batch;
    const auto builder = PromptBuilder::create(*loaded_, {});
    for (const std::string& question : questions) {
      DataRow row;
      row.prompt = ordered_json::array({{{"role", "user"}, {"content", question}}});
      row.extra = extra;
      row.agent_name = agent;
      batch.ids.append(*builder->ids(row));
      batch.seeds.push_back(batch.seeds.size());
      batch.contexts.push_back(conversation_context(row));
    }
    return batch;
  }

  std::string response(const RolloutBatch& batch, std::int64_t sample) const {
    return loaded_->decode(batch.responses.row(sample), false);
  }

  // The tokens that the mask leaves to the policy, as text.
  std::string learned(const RolloutBatch& batch, std::int64_t sample) const {
    std::vector<std::int32_t> ids;
    const auto row = batch.responses.row(sample);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (batch.mask_of(sample)[i] != 0) ids.push_back(row[i]);
    }
    return loaded_->decode(ids, false);
  }

  void SetUp() override {
    AgentTest::SetUp();
    loaded_ = tokenizer();
  }

  static Request like(std::int64_t samples = 1, std::int64_t tokens = 400) {
    return {.prompt_ids = {}, .n = samples, .sampling = {.max_new_tokens = tokens}};
  }

  // Asks for a sum, then tells it.
  static std::string adder(const std::string& text, std::int64_t) {
    const std::size_t sum = text.rfind("the sum is ");
    if (sum != std::string::npos)
      return "it is " + text.substr(sum + 11, text.find('<', sum) - sum - 11);
    return "hm " + call("calculator", "{\"a\": 2, \"b\": 3}");
  }

  std::optional<Tokenizer> loaded_;
};

TEST_F(AgentLoopTest, AToolsAnswerIsReadAndNotLearned) {
  ScriptedTurns turns(*loaded_, adder, false);
  const auto agent = loop(options());
  const PromptBatch asked = prompts({"two and three"});
  const auto batch = agent->run(turns, asked, like());
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  ASSERT_TRUE(batch->validate().ok());
  const std::string call_text = "hm " + call("calculator", "{\"a\": 2, \"b\": 3}") + "<|end|>";
  EXPECT_EQ(response(*batch, 0),
            call_text + "<|tool|>the sum is 5<|end|><|assistant|>it is 5<|end|>");
  EXPECT_EQ(learned(*batch, 0), call_text + "it is 5<|end|>");
  EXPECT_EQ(batch->logprobs.size(), static_cast<std::size_t>(batch->learned_tokens(0)));
  EXPECT_EQ(batch->logprobs.front(), -0.5F);
  EXPECT_EQ(batch->logprobs.back(), -1.5F);
  EXPECT_EQ(batch->turns, (std::vector<std::int64_t>{4}));
  EXPECT_EQ(batch->stopped[0], 1);
  EXPECT_EQ(batch->notes[0], R"({"num_turns":4,"turn_scores":[],"tool_rewards":[0.5]})");
  // What was generated is asked on with as it was, not encoded again.
  std::vector<std::int32_t> before(asked.ids.row(0).begin(), asked.ids.row(0).end());
  const auto row = batch->responses.row(0);
  before.insert(before.end(), row.begin(),
                row.end() - static_cast<std::ptrdiff_t>(std::string("it is 5").size() + 1));
  EXPECT_EQ(turns.requests[1].prompt_ids, before);
  EXPECT_EQ(turns.requests[1].sampling.max_new_tokens,
            400 - static_cast<std::int64_t>(before.size() - asked.ids.row(0).size()));
  const auto metrics = agent->take_metrics();
  EXPECT_EQ(metrics.at("tool/calls"), 1);
  EXPECT_EQ(metrics.at("tool/errors"), 0);
}

TEST_F(AgentLoopTest, TheOrderInWhichTurnsFinishChangesNothing) {
  const ScriptedTurns::Script script = [](const std::string& text, std::int64_t sample) {
    if (text.find("the sum is") != std::string::npos || sample == 1) return std::string("fine");
    return call("calculator", text.find("first") != std::string::npos ? "{\"a\": 1, \"b\": 1}"
                                                                      : "{\"a\": 2, \"b\": 2}");
  };
  const auto agent = loop(options());
  std::vector<RolloutBatch> batches;
  std::vector<std::vector<std::uint64_t>> seeds;
  for (const bool backwards : {false, true}) {
    ScriptedTurns turns(*loaded_, script, backwards);
    auto batch = agent->run(turns, prompts({"first", "second", "third"}), like(3));
    ASSERT_TRUE(batch.ok()) << batch.status().to_string();
    batch->logprobs.assign(batch->logprobs.size(), 0.0F);  // the script's are of the order
    batches.push_back(std::move(*batch));
    seeds.emplace_back();
    for (const Request& request : turns.requests) seeds.back().push_back(request.sampling.seed);
    std::sort(seeds.back().begin(), seeds.back().end());
  }
  EXPECT_EQ(batches[0], batches[1]);
  EXPECT_EQ(seeds[0], seeds[1]);
  EXPECT_EQ(std::adjacent_find(seeds[0].begin(), seeds[0].end()), seeds[0].end())
      << "two turns draw the same numbers";
  EXPECT_EQ(batches[0].prompt_of, (std::vector<std::int32_t>{0, 0, 0, 1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(batches[0].turns, (std::vector<std::int64_t>{4, 2, 4, 4, 2, 4, 4, 2, 4}));
}

TEST_F(AgentLoopTest, WhatGoesWrongInAToolIsToldToTheModelAndCounted) {
  const ScriptedTurns::Script script = [](const std::string& text, std::int64_t) {
    if (text.find("<|tool|>") != std::string::npos) return std::string("oh");
    if (text.find("hang") != std::string::npos)
      return call("calculator", R"({"operation": "hang"})");
    if (text.find("crash") != std::string::npos)
      return call("calculator", R"({"operation": "crash"})");
    if (text.find("unknown") != std::string::npos) return call("abacus", "{}");
    if (text.find("long") != std::string::npos)
      return call("calculator", R"({"operation": "long"})");
    return call("calculator", R"({"a": 1})");
  };
  ScriptedTurns turns(*loaded_, script, false);
  const auto agent = loop(options());
  const auto batch =
      agent->run(turns, prompts({"hang", "crash", "unknown", "long", "error"}), like(1, 1000));
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  EXPECT_NE(response(*batch, 0).find("Error executing tool 'calculator': no answer within 2000 ms"),
            std::string::npos)
      << response(*batch, 0);
  EXPECT_NE(response(*batch, 1).find(
                "Error executing tool 'calculator': the process was killed by signal 9"),
            std::string::npos)
      << response(*batch, 1);
  EXPECT_NE(response(*batch, 2).find(
                "Unknown function 'abacus'. Available tools: ['calculator', 'plain']"),
            std::string::npos)
      << response(*batch, 2);
  EXPECT_NE(response(*batch, 3).find(std::string(128, 'x') + "...(truncated)..." +
                                     std::string(128, 'x') + "<|end|>"),
            std::string::npos)
      << response(*batch, 3);
  EXPECT_NE(response(*batch, 4).find("Error executing tool 'calculator': 'b'"), std::string::npos)
      << response(*batch, 4);
  for (std::int64_t sample = 0; sample < 5; ++sample)
    EXPECT_TRUE(response(*batch, sample).ends_with("<|assistant|>oh<|end|>"))
        << response(*batch, sample);
  const auto metrics = agent->take_metrics();
  EXPECT_EQ(metrics.at("tool/calls"), 5);
  for (const char* name :
       {"tool/timeouts", "tool/crashes", "tool/unknown", "tool/truncated", "tool/errors"})
    EXPECT_EQ(metrics.at(name), 1) << name;
}

TEST_F(AgentLoopTest, LimitsEndConversations) {
  const ScriptedTurns::Script script = [](const std::string&, std::int64_t) {
    return call("plain", "{}") + call("plain", "{}") + call("plain", "{}");
  };
  AgentOptions settings = options();
  const auto count = [&](const RolloutBatch& batch, const std::string& what) {
    const std::string text = response(batch, 0);
    std::int64_t found = 0;
    for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
    return found;
  };
  const auto run = [&](std::int64_t tokens) {
    ScriptedTurns turns(*loaded_, script, false);
    const auto batch = loop(settings)->run(turns, prompts({"go"}), like(1, tokens));
    EXPECT_TRUE(batch.ok()) << batch.status().to_string();
    return *batch;
  };
  settings.assistant_turns_max = 2;
  RolloutBatch batch = run(1000);
  EXPECT_EQ(count(batch, "<tool_call>"), 6);
  EXPECT_EQ(count(batch, "<|tool|>"), 1);  // one call of three at a time
  EXPECT_EQ(batch.stopped[0], 1);
  settings.parallel_calls_max = 2;
  EXPECT_EQ(count(run(1000), "<|tool|>"), 2);
  settings.assistant_turns_max = 0;
  settings.user_turns_max = 1;
  EXPECT_EQ(count(run(1000), "<|tool|>"), 2);
  settings.user_turns_max = 0;
  const auto turn = static_cast<std::int64_t>(loaded_->encode(script("", 0), false)->size()) + 1;
  batch = run(turn + 10);  // no room for the answers
  EXPECT_EQ(batch.responses.row_size(0), turn);
  EXPECT_EQ(batch.stopped[0], 0);
  batch = run(2 * turn);  // no room for a whole second turn
  EXPECT_EQ(batch.responses.row_size(0), 2 * turn);
  EXPECT_EQ(batch.stopped[0], 0);
}

TEST_F(AgentLoopTest, RowsChooseTheirLoopAndTheirTools) {
  const ScriptedTurns::Script script = [](const std::string& text, std::int64_t) {
    return text.find("<|tool|>") != std::string::npos ? std::string("ok")
                                                      : call("calculator", "{}");
  };
  const auto agent = loop(options());
  ScriptedTurns turns(*loaded_, script, false);
  const auto single = agent->run(turns, prompts({"go"}, nullptr, "single_turn_agent"), like());
  ASSERT_TRUE(single.ok());
  EXPECT_EQ(single->turns[0], 2);
  const auto selected =
      agent->run(turns, prompts({"go"}, ordered_json{{"tool_selection", {"plain"}}}), like());
  ASSERT_TRUE(selected.ok());
  EXPECT_NE(
      response(*selected, 0).find("Unknown function 'calculator'. Available tools: ['plain']"),
      std::string::npos)
      << response(*selected, 0);
  support::expect_failure(
      agent
          ->run(turns, prompts({"go"}, ordered_json::parse(R"({"tool_selection": [null]})")),
                like())
          .status(),
      runtime::ErrorCode::kInvalidArgument,
      {"prompt 1: extra_info.tool_selection: tool 1 must be a name, it is null"});
}

TEST_F(AgentLoopTest, AUserAsksUntilItIsContent) {
  AgentOptions settings = options();
  settings.tools.clear();
  settings.interactions = users();
  const ScriptedTurns::Script script = [](const std::string& text, std::int64_t) {
    return text.find("again") != std::string::npos ? std::string("four") : std::string("three");
  };
  ScriptedTurns turns(*loaded_, script, false);
  const auto batch = loop(settings)->run(
      turns,
      prompts({"go"}, ordered_json{{"interaction_kwargs",
                                    {{"name", "patient"}, {"ground_truth", "four"}}}}),
      like());
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  EXPECT_EQ(response(*batch, 0), "three<|end|><|user|>again<|end|><|assistant|>four<|end|>");
  EXPECT_EQ(learned(*batch, 0), "three<|end|>four<|end|>");
  EXPECT_EQ(batch->notes[0], R"({"num_turns":4,"turn_scores":[0.0,1.0],"tool_rewards":[]})");
}

}  // namespace
}  // namespace rl
