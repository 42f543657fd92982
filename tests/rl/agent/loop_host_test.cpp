// A host of agent loops, whose processes are a script that speaks the protocol and does what its
// rows say.
#include "rl/agent/loop_host.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/rl/agent/agent_fixture.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::ErrorCode;

// In the place of the Python interpreter: it is given a program, and follows this one.
constexpr const char* kProtocolScript = R"(#!/usr/bin/env python3
import json, os, socket
owner = socket.socket(fileno=3)
lines = owner.makefile("r")
waiting = {}

def say(message):
    owner.sendall(json.dumps(message).encode() + b"\n")

def done(run, **extra):
    say({"done": run, "prompt_ids": [1], "response_ids": [2, 3], "response_mask": [1, 0],
         "num_turns": 4, "reward_score": 0.5, "extra_fields": {"pid": os.getpid(), **extra}})

def ask(run, **question):
    number = run + 100
    waiting[number] = run
    say({"ask": number, "run": run, **question})

setup = json.loads(lines.readline())
loads = setup["config"]["loads"]
if loads == "fatal":
    say({"fatal": "no module named my_loops"})
if loads == "dies":
    os._exit(3)
say({"ready": True, "loops": ["one", "two"], "any": loads == "any"})
for line in lines:
    message = json.loads(line)
    if "answer" in message:
        done(waiting.pop(message["answer"]), answer=message)
        continue
    if "cancel" in message:
        say({"cancelled": message["cancel"]})
        continue
    run, does = message["run"], message["row"]["does"]
    if does == "end":
        done(run, setup=setup, message=message)
    if does == "generate":
        ask(run, kind="generate", call=0, prompt_ids=[5, 6], sampling_params={"top_k": 3})
    if does == "generate of a text":
        ask(run, kind="generate", call=0, prompt_ids="a text", sampling_params={})
    if does == "question":
        ask(run, **message["row"]["question"])
    if does == "fail":
        say({"failed": run, "why": "ValueError: no", "traceback": "line 1"})
    if does == "die":
        os._exit(7)
    if does == "babble":
        owner.sendall(b"no protocol\n")
    if does == "speak of others":
        say({"done": run + 1})
        say({"done": -1})
        say({"cancelled": "all"})
        done(run)
)";

class LoopHostTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    const std::filesystem::path script = write("interpreter", kProtocolScript);
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    ::setenv("STARLING_PYTHON", script.c_str(), 1);
    options_.workers_max = 1;
    options_.memory_bytes = 1 << 30;
  }
  void TearDown() override {
    ::unsetenv("STARLING_PYTHON");
    AgentTest::TearDown();
  }

  runtime::Result<std::unique_ptr<LoopHost>> create(const std::string& loads = "") const {
    return LoopHost::create(options_, {{"loads", loads}},
                            *TurnText::create(tokenizer(), "", ordered_json::object()));
  }
  std::unique_ptr<LoopHost> host(const std::string& loads = "") const {
    auto made = create(loads);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? std::move(*made) : nullptr;
  }

  static LoopTask task(const std::string& does) {
    return {.agent = "one", .row = {{"does", does}}, .sampling_params = {{"top_p", 0.5}}};
  }
  static std::vector<LoopTask> tasks(const std::vector<std::string>& all) {
    std::vector<LoopTask> made;
    for (const std::string& does : all) made.push_back(task(does));
    return made;
  }
  // Until there are as many; it fails when nothing happens any more.
  static LoopEvents events(LoopHost& host, std::size_t calls, std::size_t outcomes) {
    LoopEvents all;
    for (int tries = 0; all.calls.size() < calls || all.outcomes.size() < outcomes; ++tries) {
      auto some = host.take(std::chrono::seconds(30));
      const bool none = !some.ok() || (some->calls.empty() && some->outcomes.empty());
      EXPECT_FALSE(none) << some.status().to_string();
      if (none) {
        all.calls.resize(calls);
        all.outcomes.resize(outcomes);
        return all;
      }
      std::ranges::move(some->calls, std::back_inserter(all.calls));
      std::ranges::move(some->outcomes, std::back_inserter(all.outcomes));
    }
    std::ranges::sort(all.outcomes, {}, &LoopOutcome::run);
    return all;
  }
  static LoopOutcome outcome_of(LoopHost& host, LoopTask what) {
    host.begin({std::move(what)});
    return events(host, 0, 1).outcomes.front();
  }
  static pid_t pid_of(const LoopOutcome& outcome) { return outcome.extra.value("pid", -1); }
  static bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0; }

  AgentOptions options_;
};

TEST_F(LoopHostTest, ProcessesGetTheClassesAndLoopsOfTheirRows) {
  options_.loops = write("loops.yaml", "- {name: one, _target_: my_loops.One, bonus: 3}\n");
  const auto host = this->host();
  ASSERT_NE(host, nullptr);
  EXPECT_EQ(host->names(), "one, two");
  EXPECT_TRUE(host->has("two"));
  EXPECT_FALSE(host->has("three"));
  const LoopOutcome outcome = outcome_of(*host, task("end"));
  EXPECT_EQ(outcome.failure, ScoreFailure::kNone) << outcome.why;
  EXPECT_EQ(outcome.prompt_ids, std::vector<std::int32_t>{1});
  EXPECT_EQ(outcome.response_ids, (std::vector<std::int32_t>{2, 3}));
  EXPECT_EQ(outcome.response_mask, (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ(outcome.turns, 4);
  EXPECT_EQ(outcome.reward_score, 0.5);
  const ordered_json setup = outcome.extra.value("setup", ordered_json::object());
  EXPECT_EQ(setup["loops"][0],
            (ordered_json{{"name", "one"}, {"_target_", "my_loops.One"}, {"bonus", 3}}));
  EXPECT_EQ(setup["folders"], ordered_json::array({folder_.string()}));
  EXPECT_EQ(setup["memory_bytes"], 1 << 30);
  EXPECT_EQ(setup["tokenizer"]["vocab_size"], tokenizer().vocab_size());
  const ordered_json message = outcome.extra.value("message", ordered_json::object());
  EXPECT_EQ(message["agent"], "one");
  EXPECT_EQ(message["sampling_params"], (ordered_json{{"top_p", 0.5}}));
}

TEST_F(LoopHostTest, AClassOfAllNamesIsThereForAnyRow) {
  const auto host = this->host("any");
  ASSERT_NE(host, nullptr);
  EXPECT_TRUE(host->has("three"));
}

TEST_F(LoopHostTest, WhatIsWrongWithTheClassesIsFoundWhenTheyAreLoaded) {
  const runtime::Status fatal = create("fatal").status();
  EXPECT_EQ(fatal.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(fatal.message().find("no module named my_loops"), std::string::npos) << fatal.message();
  const runtime::Status died = create("dies").status();
  EXPECT_EQ(died.code(), ErrorCode::kUnavailable);
  EXPECT_NE(died.message().find("status 3 while loading"), std::string::npos) << died.message();

  options_.loops = write("loops.yaml", "- {name: one}\n");
  const runtime::Status nameless = create().status();
  EXPECT_EQ(nameless.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(nameless.message().find("agent_loop_config_path"), std::string::npos)
      << nameless.message();
  options_.loops = folder_ / "none.yaml";
  EXPECT_EQ(create().status().code(), ErrorCode::kNotFound);
}

TEST_F(LoopHostTest, ALoopIsGivenTheTurnThatItAsksFor) {
  const auto host = this->host();
  ASSERT_NE(host, nullptr);
  host->begin(tasks({"generate", "generate"}));
  const LoopEvents asked = events(*host, 2, 0);
  ASSERT_EQ(asked.calls.size(), 2u);
  for (std::size_t run = 0; run < 2; ++run) {
    EXPECT_EQ(asked.calls[run].run, run);
    EXPECT_EQ(asked.calls[run].attempt, 0);
    EXPECT_EQ(asked.calls[run].prompt_ids, (std::vector<std::int32_t>{5, 6}));
    EXPECT_EQ(asked.calls[run].sampling_params, (ordered_json{{"top_k", 3}}));
  }
  host->answer(asked.calls[1], ordered_json{{"ids", {7}}});
  host->answer(asked.calls[0], runtime::invalid_argument("too long"));
  host->answer(asked.calls[0], ordered_json{{"ids", {8}}});  // of no call any more
  const LoopEvents ended = events(*host, 0, 2);
  ASSERT_EQ(ended.outcomes.size(), 2u);
  EXPECT_EQ(ended.outcomes[0].extra["answer"],
            (ordered_json{{"answer", 100}, {"error", "too long"}}));
  EXPECT_EQ(ended.outcomes[1].extra["answer"],
            (ordered_json{{"answer", 101}, {"value", {{"ids", {7}}}}}));
  EXPECT_EQ(pid_of(ended.outcomes[0]), pid_of(ended.outcomes[1])) << "one process may run";
}

TEST_F(LoopHostTest, QuestionsAboutTextAreAnsweredWithoutTheOwner) {
  const auto host = this->host();
  ASSERT_NE(host, nullptr);
  const auto answer = [&](const ordered_json& question) {
    LoopTask asks = task("question");
    asks.row["question"] = question;
    LoopOutcome outcome = outcome_of(*host, asks);
    return outcome.extra.value("answer", ordered_json::object());
  };
  const std::vector<std::int32_t> ids = *tokenizer().encode("abc", false);
  EXPECT_EQ(answer({{"kind", "encode"}, {"text", "abc"}, {"add_special_tokens", false}})["value"],
            ordered_json(ids));
  EXPECT_EQ(answer({{"kind", "decode"}, {"ids", ids}})["value"], "abc");
  EXPECT_EQ(answer({{"kind", "token_id"}, {"text", "no such token"}})["value"], nullptr);
  EXPECT_TRUE(answer({{"kind", "decode"}, {"ids", {-1}}}).contains("error"));
  EXPECT_TRUE(answer({{"kind", "calls"}, {"ids", ids}, {"form", "none"}}).contains("error"));
  const ordered_json unknown = answer({{"kind", "poem"}, {"ids", ids}});
  EXPECT_EQ(unknown["error"], "nothing here answers 'poem'");
}

TEST_F(LoopHostTest, WhatAProcessSaysThatIsNotPromisedIsRefusedOrPassedOver) {
  const auto host = this->host();
  ASSERT_NE(host, nullptr);
  const LoopOutcome unreadable = outcome_of(*host, task("generate of a text"));
  EXPECT_EQ(unreadable.extra["answer"]["error"], "generate: prompt_ids is not a list of token ids");
  const LoopOutcome other = outcome_of(*host, task("speak of others"));
  EXPECT_EQ(other.failure, ScoreFailure::kNone) << other.why;
  const LoopOutcome babble = outcome_of(*host, task("babble"));
  EXPECT_EQ(babble.failure, ScoreFailure::kCrash);
  EXPECT_NE(babble.why.find("something else than the protocol"), std::string::npos) << babble.why;
  EXPECT_NE(pid_of(outcome_of(*host, task("end"))), pid_of(other)) << "it has been replaced";
}

// Both are in one process. Then each has one for itself, so that it is known which of them dies.
TEST_F(LoopHostTest, LoopsOfAProcessThatDiesBeginAgainOneToAProcess) {
  const auto host = this->host();
  ASSERT_NE(host, nullptr);
  host->begin(tasks({"generate", "die"}));
  std::vector<LoopCall> calls;
  std::vector<LoopOutcome> outcomes;
  while (outcomes.size() < 2 && !HasFailure()) {
    auto some = host->take(std::chrono::seconds(30));
    ASSERT_TRUE(some.ok()) << some.status().to_string();
    ASSERT_FALSE(some->calls.empty() && some->outcomes.empty());
    for (LoopCall& call : some->calls) {
      if (call.attempt > 0) host->answer(call, ordered_json("a turn"));
      calls.push_back(std::move(call));
    }
    std::ranges::move(some->outcomes, std::back_inserter(outcomes));
  }
  std::ranges::sort(outcomes, {}, &LoopOutcome::run);
  EXPECT_EQ(calls.back().attempt, 1);
  EXPECT_EQ(outcomes[0].failure, ScoreFailure::kNone) << outcomes[0].why;
  EXPECT_EQ(outcomes[0].extra["answer"]["value"], "a turn");
  EXPECT_EQ(outcomes[1].failure, ScoreFailure::kCrash);
  EXPECT_NE(outcomes[1].why.find("agent loop one: the process ended with status 7"),
            std::string::npos)
      << outcomes[1].why;
  std::map<std::string, double> counts = host->take_metrics();
  EXPECT_EQ(counts["agent_loop/begun_anew"], 2.0);
  EXPECT_EQ(counts["agent_loop/crashes"], 1.0);
  EXPECT_EQ(host->take_metrics()["agent_loop/crashes"], 0.0) << "asked for already";
}

TEST_F(LoopHostTest, AFailureOfALoopIsItsOutcomeAndNoReasonToBeginAgain) {
  options_.timeout = std::chrono::milliseconds(50);
  const auto host = this->host();
  ASSERT_NE(host, nullptr);
  host->begin(tasks({"fail", "wait", "end"}));
  const LoopEvents ended = events(*host, 0, 3);
  EXPECT_EQ(ended.outcomes[0].failure, ScoreFailure::kError);
  EXPECT_EQ(ended.outcomes[0].why, "agent loop one: ValueError: no");
  EXPECT_EQ(ended.outcomes[1].failure, ScoreFailure::kTimeout);
  EXPECT_NE(ended.outcomes[1].why.find("within 50 ms"), std::string::npos);
  EXPECT_EQ(ended.outcomes[2].failure, ScoreFailure::kNone);
  std::map<std::string, double> counts = host->take_metrics();
  EXPECT_EQ(counts["agent_loop/errors"], 1.0);
  EXPECT_EQ(counts["agent_loop/timeouts"], 1.0);
  EXPECT_EQ(counts["agent_loop/begun_anew"], 0.0);
}

TEST_F(LoopHostTest, ANewStepForgetsTheLoopsOfOneThatFailed) {
  const auto host = this->host();
  ASSERT_NE(host, nullptr);
  const pid_t before = pid_of(outcome_of(*host, task("end")));
  EXPECT_EQ(pid_of(outcome_of(*host, task("end"))), before) << "a process is used again";
  host->begin(tasks({"generate", "wait"}));
  const LoopCall old = events(*host, 1, 0).calls.front();
  host->begin(tasks({"generate"}));
  const LoopCall call = events(*host, 1, 0).calls.front();
  EXPECT_NE(call.process, old.process);
  host->answer(old, ordered_json("of the step before"));
  host->answer(call, ordered_json("of this step"));
  const LoopEvents ended = events(*host, 0, 1);
  ASSERT_EQ(ended.outcomes.size(), 1u);
  EXPECT_EQ(ended.outcomes[0].extra["answer"]["value"], "of this step");
  EXPECT_FALSE(is_alive(before));
}

TEST_F(LoopHostTest, ItEndsItsProcesses) {
  auto host = this->host();
  ASSERT_NE(host, nullptr);
  const pid_t pid = pid_of(outcome_of(*host, task("end")));
  EXPECT_TRUE(is_alive(pid));
  host.reset();
  EXPECT_FALSE(is_alive(pid));
}

TEST(ReadOutcome, SaysWhatIsMissingOrOfAnotherKind) {
  const ordered_json whole = {
      {"prompt_ids", {1, 2}}, {"response_ids", {3}}, {"response_mask", {1}}};
  EXPECT_EQ(read_outcome(whole).failure, ScoreFailure::kNone);
  EXPECT_FALSE(read_outcome(whole).reward_score.has_value());
  const std::vector<std::tuple<std::string, ordered_json, std::string>> cases = {
      {"prompt_ids", ordered_json::array(), "no prompt_ids"},
      {"prompt_ids", {1, -2}, "no prompt_ids"},
      {"response_ids", {std::int64_t{1} << 31}, "no response_ids"},
      {"response_ids", "text", "no response_ids"},
      {"response_mask", {2}, "no response_mask"},
      {"response_mask", {1, 0}, "1 response_ids and 2 marks"},
      {"reward_score", "high", "a reward_score that is not a number"}};
  for (const auto& [key, value, why] : cases) {
    ordered_json changed = whole;
    changed[key] = value;
    const LoopOutcome outcome = read_outcome(changed);
    EXPECT_EQ(outcome.failure, ScoreFailure::kInvalid) << changed.dump();
    EXPECT_NE(outcome.why.find(why), std::string::npos) << outcome.why;
  }
}

}  // namespace
}  // namespace rl
