#include "rl/agent/custom_loops.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/core/json.h"
#include "runtime/core/log.h"

namespace rl {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

Result<LoopSample> sample_of(const LoopOutcome& outcome, std::span<const GeneratedTurn> turns,
                             std::int64_t tokens_max) {
  LoopSample sample;
  const std::size_t length =
      std::min(outcome.response_ids.size(), static_cast<std::size_t>(tokens_max));
  sample.ids.assign(outcome.response_ids.begin(),
                    outcome.response_ids.begin() + static_cast<std::ptrdiff_t>(length));
  sample.mask.assign(outcome.response_mask.begin(),
                     outcome.response_mask.begin() + static_cast<std::ptrdiff_t>(length));
  std::vector<std::int32_t> all = outcome.prompt_ids;
  all.insert(all.end(), sample.ids.begin(), sample.ids.end());
  std::vector<const GeneratedTurn*> turn_of(all.size(), nullptr);  // by which turn each token was
  for (const GeneratedTurn& turn : turns) {
    const std::size_t begin = turn.prompt_ids.size();
    if (begin >= all.size() ||
        !std::equal(turn.prompt_ids.begin(), turn.prompt_ids.end(), all.begin()))
      continue;
    for (std::size_t i = 0;
         i < turn.ids.size() && begin + i < all.size() && all[begin + i] == turn.ids[i]; ++i)
      turn_of[begin + i] = &turn;
  }
  const GeneratedTurn* last = nullptr;
  std::size_t last_at = 0;
  for (std::size_t i = 0; i < length; ++i) {
    if (sample.mask[i] == 0) continue;
    const std::size_t at = outcome.prompt_ids.size() + i;
    last = turn_of[at];
    last_at = at;
    if (last == nullptr) {
      return invalid_argument(
          "token " + std::to_string(i) + " of its response (" + std::to_string(all[at]) +
          ") has a 1 in response_mask, but generate() did not return it there. Keep its ids after "
          "the prompt_ids that it got, and mark all others with 0");
    }
    sample.logprobs.push_back(last->logprobs[at - last->prompt_ids.size()]);
  }
  if (last == nullptr)
    return invalid_argument("its response has no token that the model generated" +
                            std::string(length < outcome.response_ids.size()
                                            ? " within data.max_response_length"
                                            : ""));
  sample.length_max = last->length_max;
  sample.stopped = last->stopped && last_at + 1 == last->prompt_ids.size() + last->ids.size() &&
                   length == outcome.response_ids.size();
  return sample;
}

ordered_json loop_sampling(const SamplingParams& like) {
  return {{"temperature", like.temperature},
          {"top_p", like.top_p},
          {"top_k", like.top_k > 0 ? like.top_k : -1},
          {"repetition_penalty", like.repetition_penalty},
          {"logprobs", true}};
}

Result<SamplingParams> asked_sampling(const SamplingParams& like, const ordered_json& params) {
  SamplingParams asked = like;
  for (const auto& [name, value] : params.items()) {
    if (value.is_null() || name == "logprobs" || name == "detokenize" ||
        name == "skip_special_tokens" || name == "include_stop_str_in_output")
      continue;
    const auto wrong = [&, name = name](const std::string& expected) {
      return invalid_argument("sampling_params: " + name + " is " +
                              params[name].dump().substr(0, 100) + ", expected " + expected);
    };
    if (name == "stop_token_ids") {
      if (!value.is_array() || std::any_of(value.begin(), value.end(), [](const ordered_json& id) {
            return !id.is_number_integer();
          }))
        return wrong("a list of ids");
      asked.stop_ids = value.get<std::vector<std::int32_t>>();
      continue;
    }
    if (name == "ignore_eos") {
      if (!value.is_boolean()) return wrong("true or false");
      asked.ignore_eos = value.get<bool>();
      continue;
    }
    if (name == "stop") {
      if (value.empty()) continue;
      return wrong("none: turns end with tokens, by stop_token_ids");
    }
    if (!value.is_number()) return wrong("a number");
    const float number = value.get<float>();
    const auto whole = static_cast<std::int64_t>(std::clamp(value.get<double>(), -1.0, 1e9));
    if (name == "temperature") {
      if (number != like.temperature)
        return wrong(
            std::to_string(like.temperature) +
            ", that of the rollout: log-probabilities of samples are those at that temperature");
    } else if (name == "top_p") {
      asked.top_p = number;
    } else if (name == "top_k") {
      asked.top_k = whole;
    } else if (name == "min_p") {
      asked.min_p = number;
    } else if (name == "repetition_penalty") {
      asked.repetition_penalty = number;
    } else if (name == "presence_penalty") {
      asked.presence_penalty = number;
    } else if (name == "frequency_penalty") {
      asked.frequency_penalty = number;
    } else if (name == "max_tokens" || name == "max_new_tokens") {
      if (whole < 1) return wrong("at least 1");
      asked.max_new_tokens = std::min(whole, like.max_new_tokens);
    } else if (name == "min_tokens" || name == "min_new_tokens") {
      asked.min_new_tokens = whole;
    } else if (name == "n") {
      if (whole != 1) return wrong("1: a loop asks for one turn at a time");
    } else {
      return invalid_argument("sampling_params: '" + name + "' is not known here");
    }
  }
  asked.min_new_tokens = std::min(asked.min_new_tokens, asked.max_new_tokens);
  if (const Status valid = asked.validate(); !valid.ok())
    return valid.with_context("sampling_params");
  return asked;
}

namespace {

// What a sample's note says of its loop.
ordered_json note_of(const LoopOutcome& outcome) {
  ordered_json note = outcome.extra;
  note["num_turns"] = std::max<std::int64_t>(outcome.turns, 2);
  if (outcome.reward_score) note["agent_score"] = *outcome.reward_score;
  if (outcome.failure != ScoreFailure::kNone) note["agent_failure"] = outcome.why;
  return note;
}

}  // namespace

struct CustomLoops::Loop {
  int attempt = 0;
  std::vector<GeneratedTurn> turns;  // of that attempt
  std::optional<LoopOutcome> outcome;
};

struct CustomLoops::Run {
  TurnSource& source;
  const PromptBatch& prompts;
  const Request& like;
  std::vector<Loop> loops;
  std::size_t open = 0;                 // loops without an outcome
  std::map<RequestId, LoopCall> asked;  // turns that are generated
};

Result<std::unique_ptr<CustomLoops>> CustomLoops::create(const AgentOptions& options,
                                                         const TurnText& text) {
  Result<std::unique_ptr<LoopHost>> host = LoopHost::create(options, options.config, text);
  if (!host.ok()) return host.status();
  return std::unique_ptr<CustomLoops>(new CustomLoops(options, std::move(*host)));
}

Result<std::vector<LoopTask>> CustomLoops::tasks(const PromptBatch& prompts,
                                                 const Request& like) const {
  std::vector<LoopTask> tasks;
  const ordered_json sampling = loop_sampling(like.sampling);
  for (std::int64_t prompt = 0; prompt < prompts.ids.rows(); ++prompt) {
    const ordered_json context =
        prompts.contexts.empty()
            ? ordered_json::object()
            : runtime::parse_json<ordered_json>(prompts.contexts[static_cast<std::size_t>(prompt)]);
    ordered_json row =
        context.is_object() && context.contains("row") ? context["row"] : ordered_json::object();
    row["raw_prompt"] = context.is_object() && context.contains("messages") ? context["messages"]
                                                                            : ordered_json::array();
    const auto named = context.is_object() ? context.find("agent_name") : context.end();
    const std::string agent =
        named != context.end() && named->is_string() ? named->get<std::string>() : default_loop_;
    if (!host_->has(agent))
      return invalid_argument("the row's agent_name is '" + agent +
                              "', and there are the agent loops " + host_->names());
    for (std::int64_t sample = 0; sample < like.n; ++sample)
      tasks.push_back({agent, row, sampling});
  }
  return tasks;
}

Result<Request> CustomLoops::request(const LoopCall& call, const PromptBatch& prompts,
                                     const Request& like) const {
  if (call.prompt_ids.empty()) return invalid_argument("generate: prompt_ids is empty");
  Result<SamplingParams> sampling = asked_sampling(like.sampling, call.sampling_params);
  if (!sampling.ok()) return sampling.status();
  const auto n = static_cast<std::size_t>(like.n);
  Request request = like;
  request.n = 1;
  request.prompt_ids = call.prompt_ids;
  request.sampling = std::move(*sampling);
  request.sampling.seed =
      turn_seed(prompts.seeds[call.run / n], static_cast<std::int64_t>(call.run % n), call.call);
  return request;
}

Result<RolloutBatch> CustomLoops::run(TurnSource& source, const PromptBatch& prompts,
                                      const Request& like) {
  Result<std::vector<LoopTask>> begun = tasks(prompts, like);
  if (!begun.ok()) return begun.status();
  Run run{source, prompts, like, std::vector<Loop>(begun->size()), begun->size(), {}};
  host_->begin(std::move(*begun));
  while (run.open > 0 || !run.asked.empty()) {
    if (!source.idle()) {
      if (const Status stepped = source.step(); !stepped.ok()) return stepped;
    }
    for (Completion& completion : source.take_finished()) take_turn(run, std::move(completion));
    Result<LoopEvents> events =
        host_->take(std::chrono::milliseconds(source.idle() && run.open > 0 ? 1000 : 0));
    if (!events.ok()) return events.status().with_context("agent loops");
    for (LoopCall& call : events->calls) submit(run, std::move(call));
    for (LoopOutcome& outcome : events->outcomes) {
      Loop& loop = run.loops[outcome.run];
      loop.outcome = std::move(outcome);
      --run.open;
    }
  }
  return batch_of(run);
}

void CustomLoops::take_turn(Run& run, Completion completion) {
  const auto found = run.asked.find(completion.request);
  if (found == run.asked.end()) return;  // of a run that failed
  const LoopCall call = std::move(run.asked.extract(found).mapped());
  if (completion.finish_reason == FinishReason::kError)
    return host_->answer(call, completion.status);
  const bool stopped = completion.finish_reason == FinishReason::kStop;
  host_->answer(call, ordered_json{{"ids", completion.ids},
                                   {"logprobs", completion.logprobs},
                                   {"stop_reason", stopped ? "completed" : "length"}});
  Loop& loop = run.loops[call.run];
  if (loop.attempt != call.attempt) return;
  loop.turns.push_back({call.prompt_ids, std::move(completion.ids), std::move(completion.logprobs),
                        stopped, completion.length_max});
}

void CustomLoops::submit(Run& run, LoopCall call) {
  Loop& loop = run.loops[call.run];
  if (std::exchange(loop.attempt, call.attempt) != call.attempt) loop.turns.clear();
  Result<Request> wanted = request(call, run.prompts, run.like);
  if (!wanted.ok()) return host_->answer(call, wanted.status());
  const RequestId id = run.source.submit(std::move(*wanted));
  run.asked.emplace(id, std::move(call));
}

RolloutBatch CustomLoops::batch_of(Run& run) {
  RolloutBatch batch;
  const auto n = static_cast<std::size_t>(run.like.n);
  for (std::int64_t prompt = 0; prompt < run.prompts.ids.rows(); ++prompt) {
    const auto own = run.prompts.ids.row(prompt);
    // By all of a prompt's samples: those of the first that has not failed.
    std::vector<std::int32_t> shared;
    const std::size_t first = static_cast<std::size_t>(prompt) * n;
    for (std::size_t i = first; i < first + n; ++i) {
      const LoopSample sample = settle(run.loops[i], run.like, own.back(), shared);
      const ordered_json note = note_of(*run.loops[i].outcome);
      batch.prompt_of.push_back(static_cast<std::int32_t>(prompt));
      batch.responses.append(sample.ids);
      batch.response_mask.insert(batch.response_mask.end(), sample.mask.begin(), sample.mask.end());
      batch.logprobs.insert(batch.logprobs.end(), sample.logprobs.begin(), sample.logprobs.end());
      batch.stopped.push_back(sample.stopped ? 1 : 0);
      batch.lengths_max.push_back(sample.length_max);
      batch.turns.push_back(note["num_turns"].get<std::int64_t>());
      batch.notes.push_back(note.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    }
    if (shared.empty()) shared.assign(own.begin(), own.end());
    batch.prompts.append(shared);
  }
  return batch;
}

LoopSample CustomLoops::settle(Loop& loop, const Request& like, std::int32_t stand_in,
                               std::vector<std::int32_t>& shared) {
  LoopOutcome& outcome = *loop.outcome;
  if (outcome.failure == ScoreFailure::kNone) {
    Result<LoopSample> made = sample_of(outcome, loop.turns, like.sampling.max_new_tokens);
    if (made.ok() && !shared.empty() && shared != outcome.prompt_ids)
      made = invalid_argument(
          "its prompt_ids are not those of the row's other samples, which are compared with each "
          "other");
    if (made.ok()) {
      shared = outcome.prompt_ids;
      return std::move(*made);
    }
    outcome.failure = ScoreFailure::kInvalid;
    outcome.why = "agent loop: " + made.status().message();
  }
  return {.ids = {stand_in},
          .mask = {1},
          .logprobs = {0.0F},
          .stopped = false,
          .length_max = like.sampling.max_new_tokens};  // left out before anything is learned
}

}  // namespace rl
