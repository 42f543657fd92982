// ProcessPool: calls that may hang or crash, spread over child processes.
//
// The protocol is a JSON object a line over the child's descriptor 3. First comes the setup,
// answered by {"ready": true} or {"fatal": why}. Then come calls, one at a time. Each has an "id"
// that cannot be guessed, and is answered by any object with that "id". A child that dies, answers
// no JSON or with another id, or exceeds the time limit is killed with all that it started and
// replaced. While a call hangs, another process takes its place, so that its limit passes next to
// the others' work.
//
// With ProcessPoolOptions::copies the setup has "copies": true, and a program that answers
// {"ready": true, "copies": true} is kept to make copies of. It has loaded what takes long to load,
// so that a process that is replaced costs milliseconds. One that answers without it is done: the
// setups that follow have "copies": false.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "rl/reward/scorer.h"
#include "rl/reward/worker_process.h"
#include "runtime/core/result.h"

namespace rl {

struct ProcessPoolOptions {
  std::vector<std::string> command;  // of a child
  nlohmann::ordered_json setup;      // sent to it first
  std::string name = "reward";       // of the processes in the log
  std::size_t workers_max = 8;  // at work at once; as many again may stand in for calls that hang
  std::chrono::milliseconds timeout{10'000};         // of a call
  std::chrono::milliseconds start_timeout{120'000};  // of loading what the child loads
  bool copies = false;                               // see above
  int retries = 2;                                   // of a call, after its first try
  bool overtake = true;  // a call that takes unusually long is tried a second time next to the
                         // first, when a process is free; the first answer counts
};

/// What became of a call.
struct PoolAnswer {
  nlohmann::json message;  // the child's, without failure
  ScoreFailure failure = ScoreFailure::kNone;
  std::string why;
};

/// A resource; one thread at a time.
class ProcessPool {
 public:
  /// Starts one child and waits until it is ready; the others start when there is work for them.
  /// kInvalidArgument: what the child says is fatal; kUnavailable: it died; kDeadlineExceeded: it
  /// isn't ready in time.
  static runtime::Result<std::unique_ptr<ProcessPool>> create(ProcessPoolOptions options);

  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;
  ~ProcessPool();

  /// Does all calls; answers are in their order. An answer with "error" in it is tried again like a
  /// crash. Returns when each call has an answer or has failed `retries` + 1 times. Failures, where
  /// no child can be started any more: as create().
  runtime::Result<std::vector<PoolAnswer>> run(const std::vector<nlohmann::json>& calls,
                                               ScoreCounts& counts);

  // -- Call by call: submit(), work() while open(), take_finished(). Not between the beginning and
  // the end of run().

  /// A call to be done next to the others. Returns its number, counted from 0 since nothing was
  /// open.
  std::size_t submit(nlohmann::json call);

  /// Gives calls to processes and takes their answers; waits for something to happen, at most so
  /// long. Failures: as run().
  runtime::Status work(std::chrono::milliseconds wait_max);

  /// Calls that have an answer or failed since this was asked last, by number.
  std::vector<std::pair<std::size_t, PoolAnswer>> take_finished();

  std::size_t open() const;  // calls without an answer

  /// What went wrong since this was asked last.
  ScoreCounts take_counts();

  std::size_t processes() const { return children_.size(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Child;
  struct Run;

  explicit ProcessPool(ProcessPoolOptions options);
  runtime::Status start_child();
  runtime::Status await_first();
  bool start_copy();
  void add_child(std::unique_ptr<WorkerProcess> process);
  void assign(Run& run);
  bool give(Run& run, std::size_t call);
  void overtake(Run& run);
  void wait(const Run* run, std::chrono::milliseconds wait_max);
  void drop_overtaken(ScoreCounts& counts);
  void handle(Run* run);
  void take_answer(Run* run, Child& child, const std::string& line);
  void end_child(Run* run, Child& child, ScoreFailure failure, const std::string& why);
  void fail_try(Run& run, std::size_t call, ScoreFailure failure, const std::string& why);
  void show_output(Child& child, bool all);
  bool is_slow(const Child& child) const;
  void remember(Clock::duration taken);
  Clock::time_point next_deadline(const Run* run) const;

  ProcessPoolOptions options_;
  std::unique_ptr<Child> original_;  // what children are copies of; null: each starts by itself
  std::vector<std::unique_ptr<Child>> children_;
  std::unique_ptr<Run> run_;          // the calls since nothing was open
  std::vector<double> call_seconds_;  // of the last calls, a ring
  std::size_t calls_answered_ = 0;
  Clock::duration slow_after_ = std::chrono::seconds(1);  // until more is known
  std::uint64_t children_started_ = 0;
  int failed_starts_ = 0;  // one after the other
  int lines_shown_ = 0;    // of this run
  runtime::Status start_failure_;
};

}  // namespace rl
