#include "rl/agent/agent_loop.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "rl/agent/cut_answer.h"
#include "rl/data/tool_selection.h"
#include "runtime/core/json.h"

namespace rl {

using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

namespace {

constexpr std::array<const char*, 10> kCounts = {
    "tool/calls",   "tool/errors",     "tool/timeouts",  "tool/crashes",      "tool/invalid",
    "tool/unknown", "tool/unreadable", "tool/truncated", "interaction/calls", "interaction/failed"};

ordered_json call_json(const ToolCall& call) {
  return {{"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

}  // namespace

struct AgentLoop::Conversation {
  std::int32_t prompt = 0;
  std::int64_t sample = 0;
  std::vector<std::int32_t> ids;  // behind the prompt
  std::vector<std::uint8_t> mask;
  std::vector<float> logprobs;  // of those with a 1
  std::int64_t assistant_turns = 0;
  std::int64_t user_turns = 0;
  bool one_turn = false;  // the row wants no tools
  bool stopped = false;
  bool done = false;
  std::int64_t length_max = 0;
  ConversationState state;
  ordered_json active_tools;  // their schemas
  ordered_json answers =
      ordered_json::array();  // to this turn's calls, in their order; null: not there yet
  std::int64_t awaited = 0;
  std::vector<double> tool_rewards, turn_scores;
};

struct AgentLoop::Run {
  struct Slot {
    std::size_t conversation = 0;
    std::size_t answer = 0;
    bool user = false;
  };

  TurnSource& source;
  const PromptBatch& prompts;
  const Request& like;
  std::vector<Conversation> conversations;
  std::map<RequestId, std::size_t> requests;  // the first conversation of each
  std::map<std::size_t, Slot> calls;
  std::size_t open = 0;

  void finish(Conversation& conversation) {
    conversation.done = true;
    --open;
  }
};

Result<std::unique_ptr<AgentLoop>> AgentLoop::create(const AgentOptions& options, TurnText text) {
  Result<std::unique_ptr<ToolHost>> host = ToolHost::create(options);
  if (!host.ok()) return host.status();
  return std::unique_ptr<AgentLoop>(new AgentLoop(options, std::move(text), std::move(*host)));
}

Result<RolloutBatch> AgentLoop::run(TurnSource& source, const PromptBatch& prompts,
                                    const Request& like) {
  for (const char* name : kCounts) count(name, 0);
  Run run{source, prompts, like, {}, {}, {}, 0};
  if (const Status begun = begin(run); !begun.ok()) return begun;
  while (run.open > 0) {
    if (const Status status = advance(run); !status.ok()) return status;
  }
  return batch_of(run);
}

Status AgentLoop::begin(Run& run) {
  const PromptBatch& prompts = run.prompts;
  const auto n = static_cast<std::size_t>(run.like.n);
  run.conversations.resize(static_cast<std::size_t>(prompts.ids.rows()) * n);
  run.open = run.conversations.size();
  for (std::size_t i = 0; i < run.conversations.size(); ++i) {
    Conversation& conversation = run.conversations[i];
    const std::size_t prompt = i / n;
    conversation.prompt = static_cast<std::int32_t>(prompt);
    conversation.sample = static_cast<std::int64_t>(i % n);
    const ordered_json context = prompts.contexts.empty()
                                     ? ordered_json::object()
                                     : runtime::parse_json<ordered_json>(prompts.contexts[prompt]);
    const auto part = [&](const char* key, ordered_json otherwise) {
      return context.is_object() && context.contains(key) ? context[key] : otherwise;
    };
    conversation.state = {
        .id = std::to_string(prompts.seeds[prompt]) + "-" + std::to_string(conversation.sample),
        .messages = part("messages", ordered_json::array()),
        .tools_kwargs = part("tools_kwargs", ordered_json::object()),
        .interaction_kwargs = part("interaction_kwargs", nullptr)};
    Result<ordered_json> tools = selected_tools(host_->schemas(), context);
    if (!tools.ok()) return tools.status().with_context("prompt " + std::to_string(prompt + 1));
    conversation.active_tools = std::move(*tools);
    conversation.one_turn = part("agent_name", nullptr) == "single_turn_agent";
    if (conversation.sample != 0) continue;
    Request request = run.like;
    const auto ids = prompts.ids.row(conversation.prompt);
    request.prompt_ids.assign(ids.begin(), ids.end());
    request.sampling.seed = prompts.seeds[prompt];
    run.requests[run.source.submit(std::move(request))] = i;
  }
  return Status();
}

Status AgentLoop::advance(Run& run) {
  TurnSource& source = run.source;
  if (!source.idle()) {
    if (const Status stepped = source.step(); !stepped.ok()) return stepped;
  }
  for (const Completion& turn : source.take_finished()) {
    const auto asked = run.requests.find(turn.request);
    if (asked == run.requests.end()) continue;  // of a run that failed
    // The first request of a prompt has all its samples, the others one.
    Conversation& conversation =
        run.conversations[asked->second + static_cast<std::size_t>(turn.sample)];
    if (const Status taken = take_turn(run, conversation, turn); !taken.ok()) return taken;
  }
  if (host_->open() > 0) {
    if (const Status worked = host_->work(std::chrono::milliseconds(source.idle() ? 1000 : 0));
        !worked.ok())
      return worked.with_context("tools");
  }
  for (const ToolAnswer& answer : host_->take()) {
    if (const Status taken = take_answer(run, answer); !taken.ok()) return taken;
  }
  return {};
}

RolloutBatch AgentLoop::batch_of(const Run& run) {
  RolloutBatch batch;
  batch.prompts = run.prompts.ids;
  for (const Conversation& conversation : run.conversations) {
    batch.prompt_of.push_back(conversation.prompt);
    batch.responses.append(conversation.ids);
    batch.response_mask.insert(batch.response_mask.end(), conversation.mask.begin(),
                               conversation.mask.end());
    batch.logprobs.insert(batch.logprobs.end(), conversation.logprobs.begin(),
                          conversation.logprobs.end());
    batch.stopped.push_back(conversation.stopped ? 1 : 0);
    batch.lengths_max.push_back(conversation.length_max);
    batch.turns.push_back(conversation.assistant_turns + conversation.user_turns + 1);
    batch.notes.push_back(ordered_json{{"num_turns", batch.turns.back()},
                                       {"turn_scores", conversation.turn_scores},
                                       {"tool_rewards", conversation.tool_rewards}}
                              .dump());
  }
  return batch;
}

Status AgentLoop::take_turn(Run& run, Conversation& conversation, const Completion& turn) {
  if (turn.finish_reason == FinishReason::kError)
    return turn.status.with_context("generating for prompt " + std::to_string(conversation.prompt));
  if (turn.ids.empty()) return runtime::internal_error("the engine gave an empty turn");
  conversation.ids.insert(conversation.ids.end(), turn.ids.begin(), turn.ids.end());
  conversation.mask.resize(conversation.ids.size(), 1);
  conversation.logprobs.insert(conversation.logprobs.end(), turn.logprobs.begin(),
                               turn.logprobs.end());
  conversation.length_max = turn.length_max;
  conversation.stopped = turn.finish_reason == FinishReason::kStop;
  ++conversation.assistant_turns;
  const bool last =
      conversation.one_turn || !conversation.stopped ||
      static_cast<std::int64_t>(conversation.ids.size()) >= run.like.sampling.max_new_tokens ||
      (options_.assistant_turns_max > 0 &&
       conversation.assistant_turns >= options_.assistant_turns_max) ||
      (options_.user_turns_max > 0 && conversation.user_turns >= options_.user_turns_max);
  if (last) {
    run.finish(conversation);
    return {};
  }
  std::string said = text_.tokenizer().decode(turn.ids, /*skip_special_tokens=*/false);
  const std::string end =
      text_.tokenizer().decode(std::span(turn.ids).last(1), /*skip_special_tokens=*/false);
  if (said.ends_with(end)) said.resize(said.size() - end.size());
  return ask(run, conversation, read_turn(options_.format, said));
}

Status AgentLoop::ask(Run& run, Conversation& conversation, const AssistantTurn& turn) {
  const auto index = static_cast<std::size_t>(&conversation - run.conversations.data());
  count("tool/unreadable", turn.unreadable);
  ordered_json message = {{"role", "assistant"}, {"content", turn.content}};
  const std::size_t calls =
      std::min(turn.calls.size(), static_cast<std::size_t>(options_.parallel_calls_max));
  for (std::size_t i = 0; i < calls; ++i) message["tool_calls"].push_back(call_json(turn.calls[i]));
  conversation.state.messages.push_back(std::move(message));
  conversation.awaited = 0;
  conversation.answers = ordered_json::array();
  if (calls == 0) {
    if (!host_->has_interactions()) {
      run.finish(conversation);
      return {};
    }
    count("interaction/calls");
    const Result<std::size_t> asked = host_->ask(conversation.state);
    if (!asked.ok()) return asked.status();
    run.calls[*asked] = {index, 0, /*user=*/true};
    return {};
  }
  const std::vector<std::string> known = tool_names(conversation.active_tools);
  for (std::size_t i = 0; i < calls; ++i) {
    const ToolCall& call = turn.calls[i];
    count("tool/calls");
    conversation.answers.push_back(nullptr);
    if (std::find(known.begin(), known.end(), call.name) == known.end()) {
      std::string names;
      for (const std::string& name : known) names += (names.empty() ? "'" : ", '") + name + "'";
      conversation.answers.back() = {
          {"role", "tool"},
          {"content", "Unknown function '" + call.name + "'. Available tools: [" + names + "]"}};
      count("tool/unknown");
      continue;
    }
    run.calls[host_->call(call, conversation.state)] = {index, i, /*user=*/false};
    ++conversation.awaited;
  }
  return conversation.awaited > 0 ? Status() : go_on(run, conversation, conversation.answers);
}

Status AgentLoop::take_answer(Run& run, const ToolAnswer& answer) {
  const auto found = run.calls.find(answer.call);
  if (found == run.calls.end()) return {};  // of a run that failed
  const Run::Slot slot = found->second;
  run.calls.erase(found);
  Conversation& conversation = run.conversations[slot.conversation];
  if (slot.user) {
    if (answer.reward) conversation.turn_scores.push_back(*answer.reward);
    if (answer.failure != ScoreFailure::kNone) count("interaction/failed");
    if (answer.failure == ScoreFailure::kNone && !answer.done)
      return go_on(run, conversation,
                   ordered_json::array({{{"role", "user"}, {"content", answer.text}}}));
    run.finish(conversation);
    return {};
  }
  switch (answer.failure) {
    case ScoreFailure::kNone: break;
    case ScoreFailure::kTimeout: count("tool/timeouts"); break;
    case ScoreFailure::kCrash: count("tool/crashes"); break;
    case ScoreFailure::kError: count("tool/errors"); break;
    case ScoreFailure::kInvalid: count("tool/invalid"); break;
  }
  if (answer.reward) conversation.tool_rewards.push_back(*answer.reward);
  std::string text =
      cut_answer(answer.text, options_.answer_characters_max, options_.truncate_side);
  if (text != answer.text) count("tool/truncated");
  conversation.answers[slot.answer] = {{"role", "tool"}, {"content", std::move(text)}};
  return --conversation.awaited > 0 ? Status() : go_on(run, conversation, conversation.answers);
}

Status AgentLoop::go_on(Run& run, Conversation& conversation, const ordered_json& messages) {
  for (const ordered_json& message : messages) conversation.state.messages.push_back(message);
  const Result<std::vector<std::int32_t>> between =
      text_.between(conversation.ids.back(), messages);
  if (!between.ok()) return between.status();
  const std::int64_t tokens = static_cast<std::int64_t>(conversation.ids.size() + between->size());
  if (tokens >=
      run.like.sampling.max_new_tokens) {  // no room to answer: what was said last is the end
    conversation.stopped = false;
    run.finish(conversation);
    return {};
  }
  conversation.ids.insert(conversation.ids.end(), between->begin(), between->end());
  conversation.mask.resize(conversation.ids.size(), 0);
  ++conversation.user_turns;
  Request request = run.like;
  const auto prompt = run.prompts.ids.row(conversation.prompt);
  request.prompt_ids.assign(prompt.begin(), prompt.end());
  request.prompt_ids.insert(request.prompt_ids.end(), conversation.ids.begin(),
                            conversation.ids.end());
  request.n = 1;
  request.sampling.max_new_tokens -= tokens;
  request.sampling.min_new_tokens =
      std::max<std::int64_t>(0, request.sampling.min_new_tokens - tokens);
  request.sampling.seed =
      turn_seed(run.prompts.seeds[static_cast<std::size_t>(conversation.prompt)],
                conversation.sample, conversation.assistant_turns);
  run.requests[run.source.submit(std::move(request))] =
      static_cast<std::size_t>(&conversation - run.conversations.data());
  return {};
}

std::map<std::string, double> AgentLoop::take_metrics() { return std::exchange(counts_, {}); }

}  // namespace rl
