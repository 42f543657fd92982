// Custom agent loops: Python classes in real processes, and a model that follows a script.
#include "rl/agent/custom_loops.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "rl/data/prompt_builder.h"
#include "rl/feed/prompt_feed.h"
#include "tests/rl/agent/agent_fixture.h"
#include "tests/rl/agent/scripted_turns.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

constexpr const char* kLoops = R"(
import asyncio, os, threading
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register
from verl.utils.rollout_trace import rollout_trace_op

class Forward(AgentLoopBase):
    """One turn, as it comes."""
    @rollout_trace_op
    async def run(self, sampling_params, **kwargs):
        prompt_ids = await self.loop.run_in_executor(None, lambda: self.tokenizer.apply_chat_template(list(kwargs["raw_prompt"]), add_generation_prompt=True, tokenize=True))
        output = await self.server_manager.generate(request_id="x", prompt_ids=prompt_ids, sampling_params=sampling_params)
        return AgentLoopOutput(prompt_ids=prompt_ids, response_ids=output.token_ids, response_mask=[1] * len(output.token_ids), num_turns=2, metrics={}, extra_fields={"note": "seen"})

class Adder(AgentLoopBase):
    """The model says two numbers, the class their sum, and the model goes on: its own score, arguments from the file, the configuration, the row."""
    def __init__(self, *args, bonus=0, **kwargs):
        super().__init__(*args, **kwargs)
        self.bonus = bonus

    async def run(self, sampling_params, raw_prompt, extra_info, reward_model, **kwargs):
        messages = list(raw_prompt)
        prompt_ids = await self.ct_build_initial_tokens(messages)
        first = await self.server_manager.generate(request_id="x", prompt_ids=prompt_ids, sampling_params=sampling_params)
        said = self.tokenizer.decode(first.token_ids, skip_special_tokens=True)
        total = sum(int(word) for word in said.split()) + self.bonus + extra_info["more"]
        previous = messages + [{"role": "assistant", "content": said}]
        merged, mask, _ = await self.ct_merge_assistant_token(prompt_ids, first.token_ids, [])
        merged, mask, _ = await self.ct_merge_context_msg(previous, previous + [{"role": "tool", "content": str(total)}], merged.token_ids, mask)
        second = await self.server_manager.generate(request_id="x", prompt_ids=merged.token_ids, sampling_params=sampling_params)
        merged, mask, _ = await self.ct_merge_assistant_token(merged.token_ids, second.token_ids, mask)
        response = merged.token_ids[len(prompt_ids):][: self.rollout_config.response_length]
        right = self.tokenizer.decode(second.token_ids, skip_special_tokens=True) == reward_model["ground_truth"]
        return AgentLoopOutput(prompt_ids=prompt_ids, response_ids=response, response_mask=mask[: len(response)], reward_score=float(right), num_turns=4, metrics={})

class Early(AgentLoopBase):
    """As verl's first loops were: messages come by position, and generate() gives a list."""
    def __init__(self, config, server_manager, tokenizer):
        super().__init__(config, server_manager, tokenizer)

    @classmethod
    def init_class(cls, config, tokenizer):
        cls.greeting = config.greeting

    async def run(self, messages, sampling_params):
        prompt_ids = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True)
        response = await self.server_manager.generate(request_id="x", prompt_ids=list(prompt_ids), sampling_params=sampling_params)
        prompt_ids += response
        return AgentLoopOutput(prompt_ids=prompt_ids[:-len(response)], response_ids=prompt_ids[-len(response):], response_mask=[1] * len(response), num_turns=2, metrics={})

class Wrong(Forward):
    """Does what its prompt says."""
    async def run(self, sampling_params, **kwargs):
        what = kwargs["raw_prompt"][-1]["content"].strip()
        if what == "raise":
            raise ValueError("no such thing")
        if what == "wait":
            await asyncio.Event().wait()
        if what == "block":
            threading.Event().wait()
        if what == "crash":
            os.kill(os.getpid(), 9)
        if what == "nothing":
            return None
        output = await super().run(sampling_params | ({"temperature": 0.25} if what == "cold" else {}), **kwargs)
        if what == "short":
            output.response_mask = output.response_mask[1:]
        if what == "invented":
            output.response_ids = [one + 1 for one in output.response_ids]
        if what == "unmarked":
            output.response_mask = [0] * len(output.response_ids)
        if what == "text":
            output.response_ids = "a text"
        if what == "not a number":
            output.reward_score = float("nan")
        return output

@register("by_name")
class Registered(Forward):
    pass

def loader(config):
    return Forward
)";

class CustomLoopsTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    loaded_ = tokenizer();
    write("my_loops.py", kLoops);
    options_.loops =
        write("loops.yaml",
              "- name: forward\n  _target_: my_loops.Forward\n- name: adder\n  _target_: "
              "my_loops.Adder\n  bonus: 100\n- {name: early, _target_: my_loops.Early}\n"
              "- {name: wrong, _target_: my_loops.Wrong}\n");
    options_.default_loop = "forward";
    options_.workers_max = 2;
    options_.timeout = std::chrono::milliseconds(1500);
    options_.config = {
        {"actor_rollout_ref", {{"rollout", {{"response_length", 400}, {"prompt_length", 400}}}}},
        {"data", ordered_json::object()},
        {"greeting", "hello"}};
  }

  std::unique_ptr<CustomLoops> loops() const {
    auto text = TurnText::create(*loaded_, "", ordered_json::object());
    EXPECT_TRUE(text.ok()) << text.status().to_string();
    auto made = CustomLoops::create(options_, *text);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? std::move(*made) : nullptr;
  }
  runtime::Status failure() const {
    return CustomLoops::create(options_, *TurnText::create(*loaded_, "", ordered_json::object()))
        .status();
  }

  PromptBatch prompts(const std::vector<std::string>& questions, const std::string& agent = "",
                      const std::string& truth = "") const {
    PromptBatch batch;
    const auto builder = PromptBuilder::create(*loaded_, {});
    for (const std::string& question : questions) {
      DataRow row;
      row.prompt = ordered_json::array({{{"role", "user"}, {"content", question}}});
      row.extra = {{"more", 1000}};
      row.ground_truth = truth;
      row.agent_name = agent;
      batch.ids.append(*builder->ids(row));
      batch.seeds.push_back(batch.seeds.size());
      batch.contexts.push_back(conversation_context(row, /*whole=*/true));
    }
    return batch;
  }

  static Request like(std::int64_t samples = 1, std::int64_t tokens = 400) {
    return {.prompt_ids = {}, .n = samples, .sampling = {.max_new_tokens = tokens}};
  }

  static std::string echo(const std::string& text, std::int64_t) {
    const std::size_t at = text.rfind("<|tool|>");
    return at == std::string::npos ? "2 3" : text.substr(at + 8, text.find("<|end|>", at) - at - 8);
  }

  RolloutBatch run(CustomLoops& loops, const PromptBatch& asked, const Request& how,
                   bool backwards = false) {
    turns_.emplace(*loaded_, echo, backwards);
    auto batch = loops.run(*turns_, asked, how);
    EXPECT_TRUE(batch.ok()) << batch.status().to_string();
    if (batch.ok()) {
      EXPECT_TRUE(batch->validate().ok()) << batch->validate().to_string();
    }
    return batch.value_or(RolloutBatch{});
  }

  std::string response(const RolloutBatch& batch, std::int64_t sample) const {
    return loaded_->decode(batch.responses.row(sample), false);
  }
  static ordered_json note(const RolloutBatch& batch, std::size_t sample) {
    return ordered_json::parse(batch.notes.at(sample));
  }

  AgentOptions options_;
  std::optional<Tokenizer> loaded_;
  std::optional<ScriptedTurns> turns_;
};

TEST_F(CustomLoopsTest, ALoopThatPassesOnIsAConversationOfOneTurn) {
  const auto made = loops();
  const PromptBatch asked = prompts({"first", "second"});
  const RolloutBatch batch = run(*made, asked, like(2));
  ASSERT_EQ(batch.samples(), 4);
  EXPECT_EQ(batch.prompts.values, asked.ids.values) << "the class renders the prompt as we do";
  EXPECT_EQ(batch.prompt_of, (std::vector<std::int32_t>{0, 0, 1, 1}));
  EXPECT_EQ(response(batch, 3), "2 3<|end|>");
  EXPECT_EQ(batch.logprobs.size(), 16U);
  EXPECT_EQ(batch.stopped, (std::vector<std::uint8_t>{1, 1, 1, 1}));
  EXPECT_EQ(note(batch, 0), (ordered_json{{"note", "seen"}, {"num_turns", 2}}));
  std::vector<std::uint64_t> seeds;
  for (const Request& request : turns_->requests) seeds.push_back(request.sampling.seed);
  std::sort(seeds.begin(), seeds.end());
  EXPECT_EQ(std::unique(seeds.begin(), seeds.end()), seeds.end())
      << "samples draw unrelated numbers";
  for (const auto& [name, count] : made->take_metrics()) EXPECT_EQ(count, 0) << name;
}

TEST_F(CustomLoopsTest, WhatTheClassSaysIsReadAndNotLearnedAndItMayScoreByItself) {
  const auto made = loops();
  const RolloutBatch batch = run(*made, prompts({"add"}, "adder", "1105"), like());
  ASSERT_EQ(batch.samples(), 1);
  EXPECT_EQ(response(batch, 0), "2 3<|end|><|tool|>1105<|end|><|assistant|>1105<|end|>");
  EXPECT_EQ(batch.learned_tokens(0), 4 + 5);
  EXPECT_EQ(batch.logprobs.front(), -0.5F);
  EXPECT_EQ(batch.logprobs.back(), -1.5F);
  EXPECT_EQ(note(batch, 0), (ordered_json{{"num_turns", 4}, {"agent_score", 1.0}}));
  EXPECT_EQ(note(run(*made, prompts({"add"}, "adder", "7"), like()), 0)["agent_score"], 0.0);
}

TEST_F(CustomLoopsTest, TheOrderInWhichTurnsFinishChangesNothing) {
  options_.default_loop = "adder";
  const auto made = loops();
  const PromptBatch asked = prompts({"one", "two", "three"});
  const RolloutBatch forwards = run(*made, asked, like(3));
  std::vector<std::uint64_t> seeds;
  for (const Request& request : turns_->requests) seeds.push_back(request.sampling.seed);
  const RolloutBatch backwards = run(*made, asked, like(3), /*backwards=*/true);
  std::vector<std::uint64_t> others;
  for (const Request& request : turns_->requests) others.push_back(request.sampling.seed);
  std::sort(seeds.begin(), seeds.end());
  std::sort(others.begin(), others.end());
  EXPECT_EQ(seeds, others);
  EXPECT_EQ(forwards.responses.values, backwards.responses.values);
  EXPECT_EQ(forwards.response_mask, backwards.response_mask);
  EXPECT_EQ(forwards.notes, backwards.notes);
}

TEST_F(CustomLoopsTest, LoopsOfVerlsFirstVersionsRun) {
  const auto made = loops();
  EXPECT_EQ(response(run(*made, prompts({"x"}, "early"), like()), 0), "2 3<|end|>");
  EXPECT_EQ(response(run(*made, prompts({"x"}, "by_name"), like()), 0), "2 3<|end|>");
  EXPECT_EQ(response(run(*made, prompts({"x"}, "single_turn_agent"), like()), 0), "2 3<|end|>");
  options_.loops.clear();
  options_.loop_loader = "my_loops.loader";
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);  // which is where modules are looked for without a file
  const auto loaded = loops();
  std::filesystem::current_path(before);
  EXPECT_EQ(response(run(*loaded, prompts({"x"}, "any"), like()), 0), "2 3<|end|>");
}

TEST_F(CustomLoopsTest, ALoopThatFailsCostsItsSampleAndIsCounted) {
  const auto made = loops();
  for (const auto& [what, why] :
       std::map<std::string, std::string>{{"raise", "ValueError: no such thing"},
                                          {"nothing", "AttributeError"},
                                          {"short", "4 response_ids and 3 marks"},
                                          {"invented", "did not return it there"},
                                          {"unmarked", "no token that the model generated"},
                                          {"text", "no response_ids"},
                                          {"not a number", "reward_score is nan"},
                                          {"cold", "temperature is 0.25"},
                                          {"wait", "neither ended nor asked"}}) {
    const RolloutBatch batch = run(*made, prompts({what, "fine"}, "wrong"), like());
    ASSERT_EQ(batch.samples(), 2) << what;
    EXPECT_NE(note(batch, 0).value("agent_failure", std::string()).find(why), std::string::npos)
        << what << ": " << batch.notes[0];
    EXPECT_FALSE(note(batch, 1).contains("agent_failure")) << what << ": " << batch.notes[1];
  }
  const auto counts = made->take_metrics();
  EXPECT_EQ(counts.at("agent_loop/timeouts"), 1);
  EXPECT_EQ(counts.at("agent_loop/errors"), 4);
  EXPECT_EQ(counts.at("agent_loop/invalid"), 2) << "those whose output has another form";
}

TEST_F(CustomLoopsTest, TheOneThatKillsItsProcessIsFoundAndTheOthersBeginAgain) {
  options_.workers_max = 1;
  const auto made = loops();
  for (const std::string what : {"crash", "block"}) {
    const RolloutBatch batch = run(*made, prompts({"fine", what, "also fine"}, "wrong"), like());
    ASSERT_EQ(batch.samples(), 3) << what;
    EXPECT_FALSE(note(batch, 0).contains("agent_failure")) << batch.notes[0];
    EXPECT_TRUE(note(batch, 1).contains("agent_failure")) << what;
    EXPECT_FALSE(note(batch, 2).contains("agent_failure")) << batch.notes[2];
  }
  const auto counts = made->take_metrics();
  EXPECT_EQ(counts.at("agent_loop/crashes"), 1);
  EXPECT_EQ(counts.at("agent_loop/timeouts"), 1);
}

TEST_F(CustomLoopsTest, WhatCannotWorkIsFoundBeforeTheFirstStep) {
  options_.loops = write("bad.yaml", "- name: forward\n  _target_: my_loops.Nothing\n");
  EXPECT_NE(failure().message().find("my_loops.Nothing"), std::string::npos) << failure().message();
  options_.loops = write("bad.yaml", "- name: forward\n");
  EXPECT_NE(failure().message().find("no name and _target_"), std::string::npos)
      << failure().message();
  options_.loops = write("bad.yaml", "name: forward\n");
  EXPECT_NE(failure().message().find("a list is expected"), std::string::npos)
      << failure().message();
  options_.loops = folder_ / "none.yaml";
  EXPECT_EQ(failure().code(), runtime::ErrorCode::kNotFound);
  write("broken.py", "import nowhere_to_be_found\n");
  options_.loops = write("bad.yaml", "- {name: forward, _target_: broken.Loop}\n");
  EXPECT_NE(failure().message().find("No module named 'nowhere_to_be_found'"), std::string::npos)
      << failure().message();
}

TEST_F(CustomLoopsTest, ARowMayAskForALoopThatThereIs) {
  const auto made = loops();
  turns_.emplace(*loaded_, echo, false);
  const auto batch = made->run(*turns_, prompts({"x"}, "debate"), like());
  EXPECT_EQ(batch.status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(batch.status().message().find(
                "'debate', and there are the agent loops adder, by_name, early, forward"),
            std::string::npos)
      << batch.status().message();
}

TEST(SampleOf, TokensAreFoundBehindWhatTheyWereDrawnBehind) {
  LoopOutcome outcome;
  outcome.prompt_ids = {1, 2};
  outcome.response_ids = {3, 4, 9, 5, 6};
  outcome.response_mask = {1, 1, 0, 1, 1};
  const std::vector<GeneratedTurn> turns = {{{1, 2}, {3, 4}, {-1, -2}, true, 10},
                                            {{1, 2, 3, 4, 9}, {5, 6}, {-3, -4}, true, 20}};
  const auto whole = sample_of(outcome, turns, 100);
  ASSERT_TRUE(whole.ok()) << whole.status().to_string();
  EXPECT_EQ(whole->logprobs, (std::vector<float>{-1, -2, -3, -4}));
  EXPECT_TRUE(whole->stopped);
  EXPECT_EQ(whole->length_max, 20);
  const auto cut = sample_of(outcome, turns, 4);
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->ids, (std::vector<std::int32_t>{3, 4, 9, 5}));
  EXPECT_EQ(cut->logprobs, (std::vector<float>{-1, -2, -3}));
  EXPECT_FALSE(cut->stopped);
  outcome.response_mask = {1, 1, 1, 1, 1};
  EXPECT_NE(sample_of(outcome, turns, 100).status().message().find("token 2 of its response (9)"),
            std::string::npos);
  outcome.prompt_ids = {1, 7};  // as if it had been generated behind something else
  EXPECT_FALSE(sample_of(outcome, turns, 100).ok());
}

TEST(AskedSampling, TakesWhatVerlsLoopsAskFor) {
  const SamplingParams like{.temperature = 0.5F, .max_new_tokens = 64};
  EXPECT_EQ(loop_sampling(like)["top_k"], -1);
  const auto same = asked_sampling(like, loop_sampling(like));
  ASSERT_TRUE(same.ok()) << same.status().to_string();
  EXPECT_EQ(same->temperature, 0.5F);
  const auto asked = asked_sampling(like, {{"max_tokens", 16},
                                           {"stop_token_ids", {1, 2}},
                                           {"top_p", 0.5},
                                           {"stop", nullptr},
                                           {"ignore_eos", true}});
  ASSERT_TRUE(asked.ok()) << asked.status().to_string();
  EXPECT_EQ(asked->max_new_tokens, 16);
  EXPECT_EQ(asked->stop_ids, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(asked_sampling(like, {{"max_tokens", 1000}})->max_new_tokens, 64)
      << "a response may not be longer";
  for (const auto& [params, why] : std::vector<std::pair<ordered_json, std::string>>{
           {{{"temperature", 1.0}}, "temperature"},
           {{{"top_p", 2.0}}, "top_p"},
           {{{"max_tokens", 0}}, "at least 1"},
           {{{"stop", {"x"}}}, "stop_token_ids"},
           {{{"beams", 3}}, "'beams' is not known"},
           {{{"n", 2}}, "one turn"},
           {{{"top_p", "much"}}, "a number"},
           {{{"stop_token_ids", {"a"}}}, "a list of ids"}}) {
    EXPECT_NE(asked_sampling(like, params).status().message().find(why), std::string::npos)
        << params << asked_sampling(like, params).status().message();
  }
}

}  // namespace
}  // namespace rl
