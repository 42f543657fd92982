#include "rl/reward/process_pool.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "runtime/core/json.h"
#include "runtime/core/log.h"
#include "runtime/core/random.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

namespace {

constexpr int kFailedStartsMax = 3;
constexpr int kLinesShownMax = 100;  // of what scorers print, in a run
constexpr std::size_t kCallsRemembered = 512;
constexpr std::size_t kCallsToJudgeBy = 20;  // between two looks at how long they take
constexpr double kSlowFactor = 5.0;          // times what 95 % of calls stay below
constexpr std::chrono::milliseconds kSlowAtLeast{100};

// The number of a call, which only its answer has.
std::string random_id() {
  std::array<std::byte, 16> bytes;
  runtime::fill_random(bytes);
  std::string id;
  for (const std::byte byte : bytes) id += fmt::format("{:02x}", std::to_integer<int>(byte));
  return id;
}

}  // namespace

struct ProcessPool::Child {
  std::unique_ptr<WorkerProcess> process;
  std::uint64_t number = 0;
  bool ready = false;
  bool makes_copies = false;
  std::optional<std::size_t> call;
  std::string call_id;      // of that
  Clock::time_point since;  // it was started, or got the call
  Clock::time_point deadline;
};

struct ProcessPool::Run {
  struct Call {
    int tries = 0;
    int running = 0;
    bool done = false;
  };

  std::vector<json> calls;
  ScoreCounts counts;
  std::vector<PoolAnswer> answers;
  std::vector<Call> states;
  std::deque<std::size_t> waiting;
  std::vector<std::size_t> finished;  // not yet taken
  std::size_t open = 0;

  void finish(std::size_t call) {
    states[call].done = true;
    finished.push_back(call);
    --open;
  }
};

ProcessPool::ProcessPool(ProcessPoolOptions options) : options_(std::move(options)) {}

ProcessPool::~ProcessPool() {
  for (const auto& child : children_) show_output(*child, /*all=*/true);
}

Result<std::unique_ptr<ProcessPool>> ProcessPool::create(ProcessPoolOptions options) {
  std::unique_ptr<ProcessPool> pool(new ProcessPool(std::move(options)));
  Status status = pool->start_child();
  if (status.ok()) status = pool->await_first();
  if (!status.ok()) return status;
  if (!pool->options_.copies) return pool;
  if (pool->children_.front()->makes_copies) pool->original_ = std::move(pool->children_.front());
  pool->children_.clear();
  status = pool->start_child();
  if (status.ok() && !pool->original_) status = pool->await_first();
  if (!status.ok()) return status;
  return pool;
}

Status ProcessPool::await_first() {
  const Clock::time_point begun = Clock::now();
  auto told_after = std::chrono::seconds(5);
  while (!children_.empty() && !children_.front()->ready) {
    wait(nullptr, std::chrono::seconds(1));
    handle(nullptr);
    if (Clock::now() - begun < told_after) continue;
    LOG(info, "{}: still loading after {} s (stopped after {} s)", options_.name,
        told_after.count(),
        std::chrono::duration_cast<std::chrono::seconds>(options_.start_timeout).count());
    told_after *= 3;
  }
  return children_.empty() ? start_failure_ : Status();
}

// False, and never again: it is gone, or does not answer.
bool ProcessPool::start_copy() {
  Result<std::unique_ptr<WorkerProcess>> process = original_->process->copy();
  show_output(*original_, /*all=*/false);
  if (!process.ok()) {
    LOG(warn, "{}: {}; each process loads by itself from now on", options_.name,
        process.status().message());
    original_.reset();
    return false;
  }
  add_child(std::move(*process));
  return true;
}

void ProcessPool::add_child(std::unique_ptr<WorkerProcess> process) {
  auto child = std::make_unique<Child>();
  child->process = std::move(process);
  child->number = ++children_started_;
  child->since = Clock::now();
  child->deadline = child->since + options_.start_timeout;
  children_.push_back(std::move(child));
}

Status ProcessPool::start_child() {
  if (original_ && start_copy()) return {};
  Result<std::unique_ptr<WorkerProcess>> process = WorkerProcess::start(options_.command);
  if (!process.ok()) return process.status();
  add_child(std::move(*process));
  nlohmann::ordered_json setup = options_.setup;
  setup["copies"] = options_.copies && children_started_ == 1;
  children_.back()->process->send_line(setup.dump(-1, ' ', false, json::error_handler_t::replace));
  return {};
}

Result<std::vector<PoolAnswer>> ProcessPool::run(const std::vector<json>& calls,
                                                 ScoreCounts& counts) {
  run_.reset();
  for (const json& call : calls) submit(call);
  while (open() > 0) {
    if (const Status status = work(std::chrono::seconds(1)); !status.ok()) return status;
  }
  if (!run_) return std::vector<PoolAnswer>();
  drop_overtaken(run_->counts);
  counts.add(run_->counts);
  return std::move(std::exchange(run_, nullptr)->answers);
}

std::size_t ProcessPool::submit(json call) {
  if (!run_ || (run_->open == 0 && run_->finished.empty())) {
    ScoreCounts counts = take_counts();
    drop_overtaken(counts);  // what still runs would answer for this run's calls
    run_ = std::make_unique<Run>();
    run_->counts = counts;
    lines_shown_ = 0;
    failed_starts_ = 0;
  }
  run_->calls.push_back(std::move(call));
  run_->answers.emplace_back();
  run_->states.emplace_back();
  run_->waiting.push_back(run_->calls.size() - 1);
  ++run_->open;
  return run_->calls.size() - 1;
}

Status ProcessPool::work(std::chrono::milliseconds wait_max) {
  if (open() == 0) return {};
  assign(*run_);
  if (options_.overtake && run_->waiting.empty()) overtake(*run_);
  if (children_.empty()) {
    run_.reset();
    return start_failure_;
  }
  wait(run_.get(), wait_max);
  handle(run_.get());
  return {};
}

std::vector<std::pair<std::size_t, PoolAnswer>> ProcessPool::take_finished() {
  std::vector<std::pair<std::size_t, PoolAnswer>> finished;
  if (!run_) return finished;
  for (const std::size_t call : std::exchange(run_->finished, {})) {
    finished.emplace_back(call, std::move(run_->answers[call]));
    run_->calls[call] = nullptr;
  }
  return finished;
}

std::size_t ProcessPool::open() const { return run_ ? run_->open : 0; }

ScoreCounts ProcessPool::take_counts() {
  return run_ ? std::exchange(run_->counts, {}) : ScoreCounts();
}

// What still runs is a try whose call has its answer from another: no caller needs it.
void ProcessPool::drop_overtaken(ScoreCounts& counts) {
  for (std::size_t i = children_.size(); i-- > 0;) {
    if (!children_[i]->call) continue;
    show_output(*children_[i], /*all=*/true);
    children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
    ++counts.overtaken;
    const Status status = start_child();  // so that it has loaded by the next run
    if (!status.ok()) start_failure_ = status;
  }
}

void ProcessPool::remember(Clock::duration taken) {
  const double seconds = std::chrono::duration<double>(taken).count();
  if (call_seconds_.size() < kCallsRemembered) {
    call_seconds_.push_back(seconds);
  } else {
    call_seconds_[calls_answered_ % kCallsRemembered] = seconds;
  }
  if (++calls_answered_ % kCallsToJudgeBy != 0) return;
  std::vector<double> sorted = call_seconds_;
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() * 95 / 100);
  std::nth_element(sorted.begin(), at, sorted.end());
  slow_after_ = std::max<Clock::duration>(
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*at * kSlowFactor)),
      kSlowAtLeast);
}

bool ProcessPool::is_slow(const Child& child) const {
  return child.call && Clock::now() - child.since > slow_after_;
}

bool ProcessPool::give(Run& run, std::size_t call) {
  for (const auto& child : children_) {
    if (!child->ready || child->call) continue;
    child->call = call;
    child->since = Clock::now();
    child->deadline = child->since + options_.timeout;
    child->call_id = random_id();
    run.calls[call]["id"] = child->call_id;
    child->process->send_line(run.calls[call].dump(-1, ' ', false, json::error_handler_t::replace));
    run.calls[call].erase("id");
    Run::Call& state = run.states[call];
    if (state.tries++ > 0) ++run.counts.retries;
    ++state.running;
    return true;
  }
  return false;
}

void ProcessPool::assign(Run& run) {
  // Another try may have answered meanwhile.
  while (!run.waiting.empty() &&
         (run.states[run.waiting.front()].done || give(run, run.waiting.front())))
    run.waiting.pop_front();
  std::size_t starting = 0, at_work = 0;
  for (const auto& child : children_) {
    if (!child->ready) ++starting;
    if (!is_slow(*child)) ++at_work;
  }
  // One that hangs is no longer at work; twice as many processes is where it ends.
  while (run.waiting.size() > starting && at_work < options_.workers_max &&
         children_.size() < 2 * options_.workers_max && failed_starts_ < kFailedStartsMax) {
    const Status status = start_child();
    if (!status.ok()) {
      start_failure_ = status;
      return;
    }
    ++starting;
    ++at_work;
  }
}

// Nothing waits: processes that are idle try again what takes long elsewhere.
void ProcessPool::overtake(Run& run) {
  for (std::size_t i = 0; i < children_.size(); ++i) {  // give() adds none
    if (!is_slow(*children_[i])) continue;
    const std::size_t call = *children_[i]->call;
    const Run::Call& state = run.states[call];
    if (state.done || state.tries > options_.retries) continue;
    const bool hopeful = std::any_of(children_.begin(), children_.end(), [&](const auto& child) {
      return child->call == call && !is_slow(*child);
    });
    if (hopeful) continue;
    if (!give(run, call)) {
      const bool starting = std::any_of(children_.begin(), children_.end(),
                                        [](const auto& child) { return !child->ready; });
      if (starting || children_.size() >= 2 * options_.workers_max ||
          failed_starts_ >= kFailedStartsMax)
        return;
      const Status status = start_child();
      if (!status.ok()) start_failure_ = status;
      return;
    }
  }
}

ProcessPool::Clock::time_point ProcessPool::next_deadline(const Run* run) const {
  Clock::time_point next = Clock::now() + std::chrono::seconds(1);
  const Clock::time_point now = Clock::now();
  for (const auto& child : children_) {
    if (!child->ready || child->call) next = std::min(next, child->deadline);
    if (run == nullptr || !child->call) continue;
    if (const Clock::time_point slow = child->since + slow_after_; slow > now)
      next = std::min(next, slow);
  }
  return next;
}

void ProcessPool::wait(const Run* run, std::chrono::milliseconds wait_max) {
  std::vector<pollfd> watched;
  for (const auto& child : children_) {
    const WorkerProcess& process = *child->process;
    watched.push_back({process.socket(),
                       static_cast<short>(POLLIN | (process.wants_to_write() ? POLLOUT : 0)), 0});
    watched.push_back({process.output(), POLLIN, 0});  // poll passes over -1
    watched.push_back({process.death(), POLLIN, 0});
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(next_deadline(run) - Clock::now()).count();
  ::poll(watched.data(), watched.size(),
         static_cast<int>(std::clamp<std::int64_t>(left, 0, wait_max.count())));
}

void ProcessPool::handle(Run* run) {
  // Over a copy: ending a child changes the list.
  std::vector<Child*> present;
  for (const auto& child : children_) present.push_back(child.get());
  for (Child* child : present) {
    child->process->flush();
    show_output(*child, /*all=*/false);
    const bool connected = child->process->receive();
    bool ended = false;
    while (!ended) {
      const std::optional<std::string> line = child->process->next_line();
      if (!line) break;
      take_answer(run, *child, *line);
      ended = std::none_of(children_.begin(), children_.end(),
                           [child](const auto& one) { return one.get() == child; });
    }
    if (ended) continue;
    if (!connected || child->process->has_died()) {
      child->process->await_death();
      end_child(run, *child, ScoreFailure::kCrash,
                "the process " + child->process->describe_death());
    } else if ((!child->ready || child->call) && Clock::now() >= child->deadline) {
      const auto limit = child->ready ? options_.timeout : options_.start_timeout;
      end_child(run, *child, ScoreFailure::kTimeout,
                "no answer within " + std::to_string(limit.count()) + " ms");
    }
  }
}

void ProcessPool::take_answer(Run* run, Child& child, const std::string& line) {
  json message = runtime::parse_json(line);
  if (!message.is_object())
    return end_child(run, child, ScoreFailure::kCrash,
                     "it wrote something else than the protocol to its connection");
  if (!child.ready) {
    if (message.contains("fatal")) {
      start_failure_ = runtime::invalid_argument(message["fatal"].is_string()
                                                     ? message["fatal"].get<std::string>()
                                                     : message["fatal"].dump());
      return end_child(run, child, ScoreFailure::kError, start_failure_.message());
    }
    child.ready = true;
    child.makes_copies = message.value("copies", json()) == true;
    failed_starts_ = 0;
    return;
  }
  // What else answers is code that it runs, which would give a sample any score.
  if (!child.call || message.value("id", json()) != json(child.call_id))
    return end_child(run, child, ScoreFailure::kCrash,
                     "it answered with the id of no call that it has: code that it runs has "
                     "written to its connection");
  message.erase("id");
  if (run == nullptr) return;
  const std::size_t call = *std::exchange(child.call, std::nullopt);
  remember(Clock::now() - child.since);
  Run::Call& state = run->states[call];
  --state.running;
  if (state.done) return;
  if (message.contains("error")) {
    const std::string why = message["error"].is_string() ? message["error"].get<std::string>()
                                                         : message["error"].dump();
    run->answers[call].message = std::move(message);
    return fail_try(*run, call, ScoreFailure::kError, why);
  }
  run->answers[call] = {std::move(message), ScoreFailure::kNone, ""};
  run->finish(call);
}

void ProcessPool::fail_try(Run& run, std::size_t call, ScoreFailure failure,
                           const std::string& why) {
  Run::Call& state = run.states[call];
  (failure == ScoreFailure::kTimeout ? run.counts.timeouts
   : failure == ScoreFailure::kCrash ? run.counts.crashes
                                     : run.counts.errors) += 1;
  if (state.done) return;
  if (state.tries <= options_.retries) {
    run.waiting.push_back(call);
  } else if (state.running == 0) {
    run.answers[call].failure = failure;
    run.answers[call].why = why;
    run.finish(call);
  }
}

void ProcessPool::end_child(Run* run, Child& child, ScoreFailure failure, const std::string& why) {
  show_output(child, /*all=*/true);
  const std::optional<std::size_t> call = child.call;
  const bool was_ready = child.ready;
  if (was_ready && !call) LOG(warn, "{} {}: {}", options_.name, child.number, why);
  if (!child.ready) {
    ++failed_starts_;
    if (failure != ScoreFailure::kError) {
      const std::string message = why + " while loading";
      start_failure_ = failure == ScoreFailure::kTimeout ? runtime::deadline_exceeded(message)
                                                         : runtime::unavailable(message);
    }
  }
  const auto self = std::find_if(children_.begin(), children_.end(),
                                 [&child](const auto& one) { return one.get() == &child; });
  children_.erase(self);
  if (was_ready) {  // loading takes its time: the next call shall not wait for it
    const Status status = start_child();
    if (!status.ok()) start_failure_ = status;
  }
  if (call && run != nullptr) {
    --run->states[*call].running;
    fail_try(*run, *call, failure, why);
  }
}

void ProcessPool::show_output(Child& child, bool all) {
  for (const std::string& line : child.process->output_lines(all)) {
    if (++lines_shown_ < kLinesShownMax) LOG(info, "{} {}: {}", options_.name, child.number, line);
    if (lines_shown_ == kLinesShownMax)
      LOG(warn, "{}: prints much; the rest of what it prints in this step is left out",
          options_.name);
  }
}

}  // namespace rl
