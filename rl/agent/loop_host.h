// LoopHost: a user's agent loops, Python classes in their own processes, many loops to a
// process. Each asks for turns of the model and ends with a sample.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rl/agent/agent_options.h"
#include "rl/agent/turn_text.h"
#include "rl/reward/scorer.h"
#include "rl/reward/worker_process.h"
#include "runtime/core/result.h"
#include "runtime/core/thread.h"

namespace rl {

/// A loop to be run.
struct LoopTask {
  std::string agent;  // the class's name
  nlohmann::ordered_json
      row;  // what run() gets by name: raw_prompt, data_source, reward_model, extra_info, ...
  nlohmann::ordered_json sampling_params;
};

/// A loop asks for a turn.
struct LoopCall {
  std::size_t run = 0;
  int attempt = 0;            // of this run: what was generated for earlier ones is forgotten
  std::uint64_t process = 0;  // with `number` it says who waits for the answer
  std::int64_t number = 0;
  std::int64_t call = 0;  // how many of this attempt were before it
  std::vector<std::int32_t> prompt_ids;
  nlohmann::ordered_json sampling_params;
};

/// What became of a loop. Everything in it comes from a user's class: ids may be anything.
struct LoopOutcome {
  std::size_t run = 0;
  ScoreFailure failure = ScoreFailure::kNone;
  std::string why;  // of a failure
  std::vector<std::int32_t> prompt_ids = {};
  std::vector<std::int32_t> response_ids = {};
  std::vector<std::uint8_t> response_mask = {};  // 1: the model's
  std::optional<double> reward_score = {};       // where the class scores by itself
  std::int64_t turns = 0;
  nlohmann::ordered_json extra = nlohmann::ordered_json::object();  // extra_fields
};

/// What a message {"done": ...} of a process says; a failure (kInvalid) where it is none of the
/// promised form.
LoopOutcome read_outcome(const nlohmann::ordered_json& message);

struct LoopEvents {
  std::vector<LoopCall> calls;
  std::vector<LoopOutcome> outcomes;
};

/// A resource. Its own thread talks with the processes, and answers what is asked about text;
/// its owner, one thread, generates turns.
///
/// A loop that neither ends nor asks within the time limit is cancelled; a process that does not
/// even do that, or dies, is replaced. Its other loops start again: those of a process that died
/// one to a process, so that the one which kills it is found. A loop is never started again for its
/// own failure.
class LoopHost {
 public:
  /// Loads the classes once. `config` is the whole configuration, as loops read it.
  /// kInvalidArgument: what is wrong with the file or what Python says; kNotFound: no file;
  /// kUnavailable: no Python.
  static runtime::Result<std::unique_ptr<LoopHost>> create(const AgentOptions& options,
                                                           const nlohmann::ordered_json& config,
                                                           const TurnText& text);
  ~LoopHost();
  LoopHost(const LoopHost&) = delete;
  LoopHost& operator=(const LoopHost&) = delete;

  /// Whether there is a class of that name.
  bool has(const std::string& agent) const { return any_ || names_.contains(agent); }
  std::string names() const;

  /// Begins loops; they are numbered from 0 in this order. Those of the last call must have ended.
  void begin(std::vector<LoopTask> tasks);
  /// Gives a loop what it asked for, or says why there is nothing.
  void answer(const LoopCall& call, const runtime::Result<nlohmann::ordered_json>& generated);
  /// What has happened since, after at most `wait_max` of waiting. Failures: no process can be
  /// started any more.
  runtime::Result<LoopEvents> take(std::chrono::milliseconds wait_max);

  /// agent_loop/...: timeouts, crashes, errors and loops started again since this was asked last.
  std::map<std::string, double> take_metrics();

 private:
  using Clock = std::chrono::steady_clock;
  struct Process;
  struct Run;
  /// Counts of what went to the log, each with a bound.
  struct Logged {
    int lines = 0;  // since begin()
    int failures = 0;
  };

  LoopHost(const AgentOptions& options, const TurnText& text);
  runtime::Status start_process();
  void serve();
  void wake();
  void assign();
  void look(Process& process);
  void handle(Process& process, const nlohmann::ordered_json& message);
  void handle_first(Process& process, const nlohmann::ordered_json& message);
  void ask_for_turn(Process& process, std::size_t number, const nlohmann::ordered_json& message);
  LoopOutcome outcome_of(const Run& run, const nlohmann::ordered_json& message);
  nlohmann::ordered_json answer_about_text(const nlohmann::ordered_json& message) const;
  void end_run(std::size_t run, LoopOutcome outcome);
  void end_process(Process& process, const std::string& why, bool of_a_loop);
  void check_deadlines();
  void show_output(Process& process, bool all);

  AgentOptions options_;
  TurnText text_;  // a copy: tokenizers are cheap to copy, and used by one thread here
  nlohmann::ordered_json setup_;
  std::set<std::string> names_;
  bool any_ = false;  // a class for all names
  int wake_ = -1;     // an eventfd
  runtime::Thread thread_;

  mutable std::mutex mutex_;  // guards what follows while the thread runs
  std::condition_variable happened_;
  bool stopping_ = false;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Run>> runs_;
  std::deque<std::size_t> waiting_;
  std::size_t open_ = 0;
  std::uint64_t processes_started_ = 0;
  int failed_starts_ = 0;  // one after the other
  Logged logged_;
  LoopEvents events_;
  runtime::Status failure_;
  std::map<std::string, double> counts_;
};

}  // namespace rl
