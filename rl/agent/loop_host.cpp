#include "rl/agent/loop_host.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "rl/agent/python_programs.h"
#include "rl/agent/tool_call.h"
#include "rl/config/yaml.h"
#include "rl/data/json_text.h"
#include "rl/reward/python_programs.h"
#include "runtime/core/environment.h"
#include "runtime/core/json.h"
#include "runtime/core/log.h"

namespace rl {

using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

namespace {

constexpr int kFailedStartsMax = 3;
constexpr int kLinesShownMax = 100;  // of what loops print, in a step
constexpr int kLoopToldMax = 10;
constexpr std::int64_t kCallsMax =
    10'000;  // of one loop: one that never ends by itself does so here
constexpr std::chrono::seconds kStartTime{120};
constexpr std::chrono::seconds kCancelTime{
    2};  // for an event loop that is not blocked to take notice

std::optional<std::int64_t> whole(const ordered_json& message, const char* key) {
  const auto found = message.find(key);
  return found != message.end() && found->is_number_integer()
             ? std::optional(found->get<std::int64_t>())
             : std::nullopt;
}

std::string text_at(const ordered_json& message, const char* key) {
  const auto found = message.find(key);
  return found != message.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// A list of token ids, which fit but may be of no vocabulary.
std::optional<std::vector<std::int32_t>> ids_at(const ordered_json& message, const char* key) {
  const auto found = message.find(key);
  if (found == message.end() || !found->is_array()) return std::nullopt;
  std::vector<std::int32_t> ids;
  for (const ordered_json& id : *found) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() > INT32_MAX)
      return std::nullopt;
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

// The list of classes: name, _target_, and what else their constructors get.
Result<ordered_json> read_loops(const std::filesystem::path& file) {
  constexpr const char* kKey = "actor_rollout_ref.rollout.agent.agent_loop_config_path";
  Result<ordered_json> loops = read_yaml_list(file);
  if (!loops.ok()) return loops.status().with_context(kKey);
  for (const ordered_json& entry : *loops) {
    if (entry.is_object() && !text_at(entry, "name").empty() && !text_at(entry, "_target_").empty())
      continue;
    return runtime::invalid_argument(std::string(kKey) + ": " + file.string() +
                                     ": an entry has no name and _target_ (module.Class)");
  }
  return loops;
}

ordered_json token_facts(const Tokenizer& tokenizer) {
  ordered_json facts = {{"vocab_size", tokenizer.vocab_size()}};
  for (const char* name : {"bos_token", "eos_token", "pad_token", "unk_token"}) {
    const auto found = tokenizer.special_token_texts().find(name);
    facts[name] = found == tokenizer.special_token_texts().end() ? ordered_json()
                                                                 : ordered_json(found->second);
    const auto id = found == tokenizer.special_token_texts().end()
                        ? std::nullopt
                        : tokenizer.token_to_id(found->second);
    facts[std::string(name) + "_id"] = id ? ordered_json(*id) : ordered_json();
  }
  return facts;
}

}  // namespace

LoopOutcome read_outcome(const ordered_json& message) {
  LoopOutcome outcome;
  const auto wrong = [&](const std::string& what) {
    outcome.failure = ScoreFailure::kInvalid;
    outcome.why = "its AgentLoopOutput has " + what;
    return outcome;
  };
  auto prompt = ids_at(message, "prompt_ids"), response = ids_at(message, "response_ids"),
       mask = ids_at(message, "response_mask");
  if (!prompt || prompt->empty()) return wrong("no prompt_ids (a list of token ids)");
  if (!response || response->empty()) return wrong("no response_ids (a list of token ids)");
  if (!mask || std::any_of(mask->begin(), mask->end(), [](std::int32_t mark) { return mark > 1; }))
    return wrong("no response_mask (a list of 0 and 1)");
  if (mask->size() != response->size())
    return wrong(std::to_string(response->size()) + " response_ids and " +
                 std::to_string(mask->size()) + " marks in its response_mask");
  const auto score = message.find("reward_score");
  if (score != message.end() && !score->is_null() && !score->is_number())
    return wrong("a reward_score that is not a number");
  if (score != message.end() && score->is_number()) outcome.reward_score = score->get<double>();
  outcome.prompt_ids = std::move(*prompt);
  outcome.response_ids = std::move(*response);
  outcome.response_mask.assign(mask->begin(), mask->end());
  outcome.turns = whole(message, "num_turns").value_or(0);
  const auto extra = message.find("extra_fields");
  if (extra != message.end() && extra->is_object()) outcome.extra = *extra;
  return outcome;
}

struct LoopHost::Process {
  std::unique_ptr<WorkerProcess> worker;
  std::uint64_t number = 0;
  bool ready = false;
  bool gone = false;
  std::set<std::size_t> runs;
  Clock::time_point deadline;                  // of being ready
  std::optional<Clock::time_point> cancel_by;  // a loop was told to end
};

struct LoopHost::Run {
  LoopTask task;
  int attempt = 0;
  bool suspect = false;  // may have killed a process
  bool done = false;
  bool cancelled = false;
  Process* process = nullptr;
  std::set<std::int64_t> asked;  // numbers of calls that have no answer yet
  std::int64_t calls = 0;        // of this attempt
  Clock::time_point since;       // it has been its own turn
};

LoopHost::LoopHost(const AgentOptions& options, const TurnText& text)
    : options_(options), text_(text) {}

Result<std::unique_ptr<LoopHost>> LoopHost::create(const AgentOptions& options,
                                                   const ordered_json& config,
                                                   const TurnText& text) {
  Result<ordered_json> loops = options.loops.empty() ? Result<ordered_json>(ordered_json::array())
                                                     : read_loops(options.loops);
  if (!loops.ok()) return loops.status();
  std::unique_ptr<LoopHost> host(new LoopHost(options, text));
  std::error_code error;
  ordered_json folders = ordered_json::array();
  if (!options.loops.empty())
    folders.push_back(std::filesystem::absolute(options.loops, error).parent_path().string());
  host->setup_ = {{"loops", *loops},
                  {"loader", options.loop_loader},
                  {"folders", folders},
                  {"config", config},
                  {"tokenizer", token_facts(text.tokenizer())},
                  {"memory_bytes", options.memory_bytes}};
  host->wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (host->wake_ < 0) return runtime::errno_status(errno, "agent loops: eventfd");
  if (const Status started = host->start_process(); !started.ok())
    return started.with_context("agent loops");
  auto thread = runtime::Thread::start_real([raw = host.get()] { raw->serve(); });
  if (!thread.ok()) return thread.status().with_context("agent loops");
  host->thread_ = *std::move(thread);
  std::unique_lock lock(host->mutex_);
  host->happened_.wait(lock, [&] {
    return !host->failure_.ok() || (!host->processes_.empty() && host->processes_.front()->ready);
  });
  if (!host->failure_.ok()) return host->failure_.with_context("agent loops");
  return host;
}

LoopHost::~LoopHost() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
  for (const auto& process : processes_) show_output(*process, /*all=*/true);
  if (wake_ >= 0) ::close(wake_);
}

std::string LoopHost::names() const {
  std::string all;
  for (const std::string& name : names_) all += (all.empty() ? "" : ", ") + name;
  return all;
}

void LoopHost::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
}

Status LoopHost::start_process() {
  const char* interpreter = runtime::environment_variable("STARLING_PYTHON");
  Result<std::unique_ptr<WorkerProcess>> worker = WorkerProcess::start(
      {interpreter != nullptr && *interpreter != 0 ? interpreter : "python3", "-c",
       std::string(kPythonServer) + kToolModules + kLoopOwner + kLoopModules + kLoopProgram});
  if (!worker.ok()) return worker.status();
  auto process = std::make_unique<Process>();
  process->worker = std::move(*worker);
  process->number = ++processes_started_;
  process->deadline = Clock::now() + kStartTime;
  process->worker->send_line(json_line(setup_));
  processes_.push_back(std::move(process));
  return {};
}

void LoopHost::begin(std::vector<LoopTask> tasks) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& process : processes_)
      process->gone |= !process->runs.empty();  // of a step that failed: its end kills it
    runs_.clear();
    waiting_.clear();
    events_ = {};
    logged_.lines = 0;
    failed_starts_ = 0;
    for (LoopTask& task : tasks) {
      waiting_.push_back(runs_.size());
      runs_.push_back(std::make_unique<Run>());
      runs_.back()->task = std::move(task);
    }
    open_ = runs_.size();
  }
  wake();
}

void LoopHost::answer(const LoopCall& call, const Result<ordered_json>& generated) {
  {
    const std::lock_guard lock(mutex_);
    if (call.run >= runs_.size()) return;
    Run& run = *runs_[call.run];
    if (run.done || run.process == nullptr || run.process->number != call.process ||
        run.asked.erase(call.number) == 0)
      return;  // no caller waits any more
    if (run.asked.empty()) run.since = Clock::now();
    ordered_json message = {{"answer", call.number}};
    generated.ok() ? message["value"] = *generated
                   : message["error"] = generated.status().message();
    run.process->worker->send_line(json_line(message));
  }
  wake();  // what the socket does not take at once is sent by the thread
}

Result<LoopEvents> LoopHost::take(std::chrono::milliseconds wait_max) {
  std::unique_lock lock(mutex_);
  happened_.wait_for(lock, wait_max, [&] {
    return !failure_.ok() || !events_.calls.empty() || !events_.outcomes.empty();
  });
  if (!failure_.ok()) return failure_;
  return std::exchange(events_, {});
}

std::map<std::string, double> LoopHost::take_metrics() {
  const std::lock_guard lock(mutex_);
  std::map<std::string, double> counts = std::exchange(counts_, {});
  for (const char* name : {"agent_loop/timeouts", "agent_loop/crashes", "agent_loop/errors",
                           "agent_loop/invalid", "agent_loop/begun_anew"})
    counts.emplace(name, 0.0);
  return counts;
}

void LoopHost::serve() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    assign();
    std::vector<pollfd> watched = {{wake_, POLLIN, 0}};
    for (const auto& process : processes_) {
      const WorkerProcess& worker = *process->worker;
      watched.push_back({worker.socket(),
                         static_cast<short>(POLLIN | (worker.wants_to_write() ? POLLOUT : 0)), 0});
      watched.push_back({worker.output(), POLLIN, 0});  // poll passes over -1
      watched.push_back({worker.death(), POLLIN, 0});
    }
    lock.unlock();
    ::poll(watched.data(), watched.size(), 100);
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t seen = ::read(wake_, &count, sizeof count);
    lock.lock();
    for (std::size_t i = 0; i < processes_.size(); ++i) look(*processes_[i]);
    check_deadlines();
    std::erase_if(processes_, [](const auto& process) { return process->gone; });
    if (!failure_.ok() || !events_.calls.empty() || !events_.outcomes.empty())
      happened_.notify_all();
  }
}

// Loops are spread evenly over as many processes as there may be; a suspect has one for itself.
void LoopHost::assign() {
  if (open_ == 0 || !failure_.ok()) return;
  const std::size_t workers = static_cast<std::size_t>(options_.workers_max);
  const std::size_t share = (open_ + workers - 1) / workers;
  const auto has_suspect = [&](const Process& process) {
    return std::any_of(process.runs.begin(), process.runs.end(),
                       [&](std::size_t run) { return runs_[run]->suspect; });
  };
  std::deque<std::size_t> left;
  for (const std::size_t number : std::exchange(waiting_, {})) {
    Run& run = *runs_[number];
    Process* chosen = nullptr;
    for (const auto& process : processes_) {
      if (!process->ready || process->cancel_by || has_suspect(*process) ||
          process->runs.size() >= (run.suspect ? 1 : share))
        continue;
      if (chosen == nullptr || process->runs.size() < chosen->runs.size()) chosen = process.get();
    }
    if (chosen == nullptr) {
      left.push_back(number);
      continue;
    }
    chosen->runs.insert(number);
    run.process = chosen;
    run.since = Clock::now();
    chosen->worker->send_line(json_line({{"run", number},
                                         {"agent", run.task.agent},
                                         {"row", run.task.row},
                                         {"sampling_params", run.task.sampling_params}}));
  }
  waiting_ = std::move(left);
  std::size_t starting = 0;
  for (const auto& process : processes_) starting += process->ready ? 0 : 1;
  while (waiting_.size() > starting * share && processes_.size() < workers &&
         failed_starts_ < kFailedStartsMax) {
    if (const Status started = start_process(); !started.ok()) {
      if (processes_.empty()) failure_ = started;
      return;
    }
    ++starting;
  }
}

void LoopHost::look(Process& process) {
  process.worker->flush();
  show_output(process, /*all=*/false);
  const bool connected = process.worker->receive();
  while (!process.gone) {
    const std::optional<std::string> line = process.worker->next_line();
    if (!line) break;
    const ordered_json message = runtime::parse_json<ordered_json>(*line);
    if (!message.is_object())
      return end_process(process, "it wrote something else than the protocol to its descriptor 3",
                         /*of_a_loop=*/true);
    handle(process, message);
  }
  if (process.gone || (connected && !process.worker->has_died())) return;
  process.worker->await_death();
  end_process(process, "the process " + process.worker->describe_death(), /*of_a_loop=*/true);
}

void LoopHost::handle(Process& process, const ordered_json& message) {
  if (!process.ready) return handle_first(process, message);
  if (const auto ask = whole(message, "ask"); ask && text_at(message, "kind") != "generate") {
    ordered_json answer = answer_about_text(message);
    answer["answer"] = *ask;
    return process.worker->send_line(json_line(answer));
  }
  // The rest is about a loop that this process has.
  const auto about = [&]() -> std::optional<std::size_t> {
    for (const char* key : {"run", "done", "failed", "cancelled"}) {
      const auto number = whole(message, key);
      if (number && *number >= 0 && process.runs.contains(static_cast<std::size_t>(*number)))
        return static_cast<std::size_t>(*number);
    }
    return std::nullopt;
  }();
  if (!about) return;
  if (message.contains("ask")) return ask_for_turn(process, *about, message);
  end_run(*about, outcome_of(*runs_[*about], message));
}

void LoopHost::handle_first(Process& process, const ordered_json& message) {
  if (message.contains("fatal")) {
    failure_ = runtime::invalid_argument(text_at(message, "fatal"));
    return end_process(process, failure_.message(), /*of_a_loop=*/false);
  }
  process.ready = true;
  failed_starts_ = 0;
  if (names_.empty()) {
    for (const ordered_json& name : message.value("loops", ordered_json::array())) {
      if (name.is_string()) names_.insert(name.get<std::string>());
    }
    any_ = message.value("any", false);
  }
  happened_.notify_all();
}

void LoopHost::ask_for_turn(Process& process, std::size_t number, const ordered_json& message) {
  Run& run = *runs_[number];
  auto prompt = ids_at(message, "prompt_ids");
  const auto params = message.find("sampling_params");
  LoopCall call{.run = number,
                .attempt = run.attempt,
                .process = process.number,
                .number = *whole(message, "ask"),
                .call = whole(message, "call").value_or(0),
                .prompt_ids = {},
                .sampling_params = {}};
  const bool readable = prompt && params != message.end() && params->is_object();
  if (!readable || ++run.calls > kCallsMax) {
    const std::string why = readable ? "a loop may ask for " + std::to_string(kCallsMax) + " turns"
                                     : "generate: prompt_ids is not a list of token ids";
    return process.worker->send_line(json_line({{"answer", call.number}, {"error", why}}));
  }
  call.prompt_ids = std::move(*prompt);
  call.sampling_params = *params;
  run.asked.insert(call.number);
  events_.calls.push_back(std::move(call));
}

LoopOutcome LoopHost::outcome_of(const Run& run, const ordered_json& message) {
  if (message.contains("done")) return read_outcome(message);
  LoopOutcome outcome;
  if (message.contains("failed")) {
    outcome.failure = ScoreFailure::kError;
    outcome.why = text_at(message, "why");
    if (++logged_.failures <= kLoopToldMax)
      LOG(warn, "agent loop {}: {}\n{}", run.task.agent, outcome.why,
          text_at(message, "traceback"));
  } else {
    outcome.failure = ScoreFailure::kTimeout;
    outcome.why = "it neither ended nor asked for a turn within " +
                  std::to_string(options_.timeout.count()) + " ms";
  }
  return outcome;
}

ordered_json LoopHost::answer_about_text(const ordered_json& message) const {
  const auto answer = [](auto result) {
    return result.ok() ? ordered_json{{"value", *result}}
                       : ordered_json{{"error", result.status().message()}};
  };
  const auto listed = [&](const char* key) {
    return message.contains(key) ? message.at(key) : ordered_json();
  };
  const std::string kind = text_at(message, "kind");
  const Tokenizer& tokenizer = text_.tokenizer();
  if (kind == "encode")
    return answer(
        tokenizer.encode(text_at(message, "text"), message.value("add_special_tokens", true)));
  if (kind == "template")
    return answer(text_.render(listed("messages"), listed("tools"),
                               message.value("add_generation_prompt", false), listed("variables")));
  if (kind == "between")
    return answer(text_.between(static_cast<std::int32_t>(whole(message, "last").value_or(0)),
                                listed("messages")));
  if (kind == "token_id") {
    const auto id = tokenizer.token_to_id(text_at(message, "text"));
    return {{"value", id ? ordered_json(*id) : ordered_json()}};
  }
  const auto ids = ids_at(message, "ids");
  if (!ids) return {{"error", kind + ": no list of token ids"}};
  if (kind == "decode")
    return answer(tokenizer.decode_checked(*ids, message.value("skip_special_tokens", false)));
  if (kind == "calls") {
    const Result<ToolFormat> format = parse_tool_format(text_at(message, "form"));
    if (!format.ok()) return {{"error", format.status().message()}};
    const auto text = tokenizer.decode_checked(*ids, /*skip_special_tokens=*/false);
    if (!text.ok()) return {{"error", text.status().message()}};
    const AssistantTurn turn = read_turn(*format, *text);
    ordered_json calls = ordered_json::array();
    for (const ToolCall& call : turn.calls)
      calls.push_back({{"name", call.name}, {"arguments", json_line(call.arguments)}});
    return {{"value", {{"content", turn.content}, {"calls", calls}}}};
  }
  return {{"error", "nothing here answers '" + kind + "'"}};
}

void LoopHost::end_run(std::size_t number, LoopOutcome outcome) {
  Run& run = *runs_[number];
  if (run.process != nullptr) {
    run.process->runs.erase(number);
    if (run.cancelled) run.process->cancel_by.reset();
  }
  run.process = nullptr;
  run.done = true;
  --open_;
  switch (outcome.failure) {
    case ScoreFailure::kNone: break;
    case ScoreFailure::kTimeout: ++counts_["agent_loop/timeouts"]; break;
    case ScoreFailure::kCrash: ++counts_["agent_loop/crashes"]; break;
    case ScoreFailure::kError: ++counts_["agent_loop/errors"]; break;
    case ScoreFailure::kInvalid: ++counts_["agent_loop/invalid"]; break;
  }
  if (outcome.failure != ScoreFailure::kNone)
    outcome.why = "agent loop " + run.task.agent + ": " + outcome.why;
  outcome.run = number;
  events_.outcomes.push_back(std::move(outcome));
}

// `of_a_loop`: one of its loops did it.
void LoopHost::end_process(Process& process, const std::string& why, bool of_a_loop) {
  show_output(process, /*all=*/true);
  process.gone = true;
  if (!process.ready) {
    ++failed_starts_;
    if (failure_.ok() && (failed_starts_ >= kFailedStartsMax || names_.empty()))
      failure_ = runtime::unavailable(why + " while loading");
    return;
  }
  const std::set<std::size_t> runs = std::exchange(process.runs, {});
  for (const std::size_t number : runs) {
    Run& run = *runs_[number];
    run.process = nullptr;
    if (of_a_loop && runs.size() == 1) {
      end_run(number, {.failure = ScoreFailure::kCrash, .why = why});
      continue;
    }
    run.suspect = of_a_loop;
    run.cancelled = false;
    run.asked.clear();
    run.calls = 0;
    ++run.attempt;
    ++counts_["agent_loop/begun_anew"];
    waiting_.push_back(number);
  }
  std::erase_if(events_.calls,
                [&](const LoopCall& call) { return call.process == process.number; });
}

void LoopHost::check_deadlines() {
  const Clock::time_point now = Clock::now();
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = *processes_[i];
    if (process.gone) continue;
    if (!process.ready) {
      if (now >= process.deadline)
        end_process(process, "it is not ready after " + std::to_string(kStartTime.count()) + " s",
                    /*of_a_loop=*/false);
      continue;
    }
    if (process.cancel_by && now >= *process.cancel_by) {
      // Its event loop is blocked, by the one that was told to end or by another: alone, it is
      // known.
      if (process.runs.size() == 1) {
        end_run(*process.runs.begin(), {.failure = ScoreFailure::kTimeout,
                                        .why = "it neither ended nor asked for a turn within " +
                                               std::to_string(options_.timeout.count()) +
                                               " ms, and did not end when told to"});
      }
      end_process(process, "it does not answer", /*of_a_loop=*/true);
      continue;
    }
    if (process.cancel_by) continue;
    for (const std::size_t number : process.runs) {
      Run& run = *runs_[number];
      if (!run.asked.empty() || now - run.since < options_.timeout) continue;
      run.cancelled = true;
      process.cancel_by = now + kCancelTime;
      process.worker->send_line(json_line({{"cancel", number}}));
      break;  // a blocked one makes all others late: one at a time
    }
  }
}

void LoopHost::show_output(Process& process, bool all) {
  for (const std::string& line : process.worker->output_lines(all)) {
    if (++logged_.lines < kLinesShownMax) LOG(info, "agent loops {}: {}", process.number, line);
    if (logged_.lines == kLinesShownMax)
      LOG(warn,
          "agent loops: they print much; the rest of what they print in this step is left out");
  }
}

}  // namespace rl
