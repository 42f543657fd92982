#include "world.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "child.h"
#include "runtime/core/check.h"

namespace sim {

namespace {

// What a step takes: enough that deadlines and faults fall between any two of them.
constexpr std::int64_t kStepMicrosMax = 12;
// Steps that a process may take to end once its connections are cut.
constexpr int kEndStepsMax = 200'000;
constexpr std::uint64_t kPrime = 0x100000001b3ull;

}  // namespace

World::World(std::uint64_t seed, bool trace)
    : random_(seed),
      trace_(trace),
      now_(runtime::Deadline(std::chrono::hours(1000))),
      began_(now_),
      network_(*this) {
  runtime::install_simulation(this);
  runtime::install_simulated_network(this);
  runtime::install_simulated_processes(this);
}

void World::end() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (!processes_[i]->ended) crash(*processes_[i], Farewell::kOrderly);
  }
  for (const Loop& loop : loops_)
    fail(loop.process->name + " has ended, and something still holds its event loop");
}

World::~World() {
  CHECK(threads_.empty());
  alarms_.clear();
  threads_.clear();
  runtime::install_simulated_processes(nullptr);
  runtime::install_simulated_network(nullptr);
  runtime::install_simulation(nullptr);
}

// -- Processes

std::shared_ptr<Process> World::start(std::string name,
                                      std::map<std::string, std::string> variables,
                                      std::function<void()> main) {
  auto process =
      std::make_shared<Process>(std::move(name), static_cast<int>(processes_.size()) + 1);
  process->variables = std::move(variables);
  if (auto worker = process->variables.find("STARLING_WORKER");
      worker != process->variables.end()) {
    process->worker = runtime::WorkerId::from_hex(worker->second).value_or(runtime::WorkerId{});
  }
  processes_.push_back(process);
  note("start " + process->name);
  add_thread(process.get(), [this, raw = process.get(), main = std::move(main)] {
    main();
    finish(*raw);
  });
  return process;
}

void World::finish(Process& process) {
  process.ended = true;
  network_.cut(process, Farewell::kOrderly);
  note("end " + process.name);
  process.on_crash = nullptr;
  if (auto on_end = std::exchange(process.on_end, nullptr)) {
    Process* outer = std::exchange(current_, nullptr);  // what follows is of no process
    on_end();
    current_ = outer;
  }
}

void World::crash(Process& process, Farewell farewell) {
  CHECK(Fiber::current() == nullptr);
  if (process.crashed || process.ended) return;
  note("crash " + process.name);
  network_.collect();
  process.crashed = true;
  process.paused_until = runtime::Deadline::min();
  network_.cut(process, farewell);
  Process* outer = std::exchange(current_, &process);
  if (process.on_crash) process.on_crash();
  current_ = outer;
  wake(&process);
  // Cut off, it may see as much time pass as its end takes; no other process does.
  const runtime::Deadline now = now_;
  int steps = 0;
  for (; !process.ended && steps < kEndStepsMax; ++steps) {
    if (run_something(&process)) continue;
    auto next = std::find_if(alarms_.begin(), alarms_.end(),
                             [&](const auto& entry) { return entry.second.process == &process; });
    if (next == alarms_.end()) break;
    now_ = std::max(now_, next->first.first);
    auto action = std::move(next->second.action);
    alarm_times_.erase(next->first.second);
    alarms_.erase(next);
    current_ = &process;
    action();
    current_ = outer;
    wake(&process);
  }
  now_ = now;
  network_.collect();
  if (!process.ended) {
    std::fprintf(stderr, "%s does not end after its connections are cut (%d steps)\n",
                 process.name.c_str(), steps);
    std::abort();  // its threads stand on stacks that cannot be unwound
  }
}

void World::pause(Process& process, std::chrono::microseconds time) {
  note("pause " + process.name);
  const runtime::Deadline until = now_ + time;
  process.paused_for += time;
  process.paused_until = std::max(process.paused_until, until);
  call_at(until, [] {});
}

bool World::is_paused(const Process* process) const {
  return process && process->paused_until > now_;
}

// -- Threads

World::Thread& World::add_thread(Process* process, std::function<void()> body) {
  auto thread = std::make_unique<Thread>();
  thread->id = next_id_++;
  thread->process = process;
  thread->fiber = std::make_unique<Fiber>(std::move(body));
  threads_.push_back(std::move(thread));
  return *threads_.back();
}

void World::block(std::function<bool()> ready, runtime::Deadline deadline) {
  CHECK(thread_ != nullptr);
  Thread& self = *thread_;
  self.ready = std::move(ready);
  self.deadline = deadline;
  std::uint64_t alarm = 0;
  if (deadline != runtime::Deadline::max()) alarm = call_at(deadline, [] {});
  Fiber::suspend();
  if (alarm != 0) forget(alarm);
}

bool World::can_run(const Thread& thread) const {
  if (thread.fiber->done() || is_paused(thread.process)) return false;
  return !thread.ready || thread.deadline <= now_ || thread.ready();
}

std::uint64_t World::start_thread(std::function<void()> body) {
  return add_thread(current_, std::move(body)).id;
}

void World::join_thread(std::uint64_t id) {
  const auto ended = [this, id] {  // those that have are forgotten
    return std::none_of(threads_.begin(), threads_.end(), [&](const auto& thread) {
      return thread->id == id && !thread->fiber->done();
    });
  };
  if (!ended()) block(ended, runtime::Deadline::max());
}

bool World::wait(runtime::EventLoop& loop, const runtime::Event& event,
                 runtime::Deadline deadline) {
  if (event.is_set()) return true;
  if (deadline <= now_ || loop.is_stopped()) return false;
  block([&] { return event.is_set() || loop.is_stopped(); }, deadline);
  return event.is_set();
}

void World::wait_until(std::function<bool()> condition, runtime::Deadline deadline) {
  Process* process = current_;
  block([process, condition = std::move(
                      condition)] { return process->crashed || (condition && condition()); },
        deadline);
}

void World::sleep(std::chrono::microseconds time) { wait_until({}, now_ + time); }

// -- Loops

void World::add_loop(runtime::EventLoop& loop) { loops_.push_back({&loop, current_}); }

void World::remove_loop(runtime::EventLoop& loop) {
  auto found = std::find_if(loops_.begin(), loops_.end(),
                            [&](const Loop& known) { return known.loop == &loop; });
  const Process* process = found->process;
  loops_.erase(found);
  // What the process still waited for goes while its loop is there, as with the handlers that the
  // loop itself holds.
  std::vector<Alarm> dropped;
  for (auto at = alarms_.begin(); at != alarms_.end();) {
    if (at->second.process != process) {
      ++at;
      continue;
    }
    dropped.push_back(std::move(at->second));
    alarm_times_.erase(at->first.second);
    at = alarms_.erase(at);
  }
}

void World::wake(const Process* process) {
  for (Loop& loop : loops_) {
    if (process == nullptr || loop.process == process) loop.idle = false;
  }
}

// -- Time

std::uint64_t World::call_at(runtime::Deadline at, std::function<void()> action) {
  const std::uint64_t id = next_id_++;
  alarms_.emplace(std::pair(at, id), Alarm{current_, std::move(action)});
  alarm_times_.emplace(id, at);
  return id;
}

void World::call_later(std::chrono::microseconds delay, std::function<void()> action) {
  Process* outer = std::exchange(current_, nullptr);
  call_at(now_ + delay, std::move(action));
  current_ = outer;
}

void World::forget(std::uint64_t id) {
  auto found = alarm_times_.find(id);
  if (found == alarm_times_.end()) return;
  alarms_.erase({found->second, id});
  alarm_times_.erase(found);
}

std::uint64_t World::use_disk(std::function<void(int)> operation) {
  const auto time = random_.one_in(10) ? random_.micros(1000, 300'000) : random_.micros(20, 3000);
  const int error = faults && disk_fails > 0 && random_.one_in(disk_fails) ? EIO : 0;
  return call_at(now_ + time, [operation = std::move(operation), error] { operation(error); });
}

std::chrono::microseconds World::age() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(now_ - began_);
}

// -- Steps

void World::run_thread(std::size_t index) {
  Thread* thread = threads_[index].get();
  Process* process = thread->process;
  thread->ready = nullptr;
  thread->deadline = runtime::Deadline::max();
  current_ = process;
  thread_ = thread;
  thread->fiber->resume();
  thread_ = nullptr;
  current_ = nullptr;
  wake(process);
  if (thread->fiber->done()) {
    std::erase_if(threads_, [&](const auto& known) { return known.get() == thread; });
  }
}

bool World::run_loop(std::size_t index) {
  runtime::EventLoop* loop = loops_[index].loop;
  current_ = loops_[index].process;
  const bool ran = loop->step();
  current_ = nullptr;
  // A handler neither makes nor ends loops: those belong to main threads.
  loops_[index].idle = !ran;
  return ran;
}

void World::run_alarm() {
  auto first = alarms_.begin();
  now_ = std::max(now_, first->first.first);
  Alarm alarm = std::move(first->second);
  alarm_times_.erase(first->first.second);
  alarms_.erase(first);
  current_ = alarm.process;
  alarm.action();
  current_ = nullptr;
  wake(alarm.process);
}

bool World::run_something(const Process* only) {
  Process* outer = current_;
  for (;;) {
    // By position: threads, then loops, then the alarm that is due.
    std::vector<std::size_t> choices;
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      if ((!only || threads_[i]->process == only) && can_run(*threads_[i])) choices.push_back(i);
    }
    const std::size_t threads = choices.size();
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      if ((!only || loops_[i].process == only) && !loops_[i].idle && !is_paused(loops_[i].process))
        choices.push_back(i);
    }
    const bool due = !only && !alarms_.empty() && alarms_.begin()->first.first <= now_;
    const std::size_t count = choices.size() + (due ? 1 : 0);
    if (count == 0) return false;
    const std::size_t chosen = random_.below(count);
    ++steps_;
    if (chosen == choices.size()) {
      run_alarm();
    } else if (chosen < threads) {
      run_thread(choices[chosen]);
    } else if (!run_loop(choices[chosen])) {
      continue;  // it had nothing to do after all
    }
    hash_ = (hash_ ^ (chosen << 32 ^ static_cast<std::uint64_t>(age().count()))) * kPrime;
    current_ = outer;
    return true;
  }
}

bool World::step() {
  now_ += random_.micros(0, kStepMicrosMax);
  const bool ran = run_something(nullptr);
  network_.collect();
  if (ran) return true;
  if (alarms_.empty()) return false;
  ++steps_;
  run_alarm();
  network_.collect();
  return true;
}

bool World::run_until(const std::function<bool()>& condition, runtime::Deadline deadline) {
  while (!condition()) {
    if (now_ >= deadline || !failure_.empty() || !step()) return condition();
  }
  return true;
}

// -- The rest of the machine

void World::note(std::string what) {
  for (std::size_t at = 0; !folder.empty() && (at = what.find(folder, at)) != std::string::npos;)
    what.replace(at, folder.size(), "DIR");
  for (unsigned char c : what) hash_ = (hash_ ^ c) * kPrime;
  hash_ = (hash_ ^ static_cast<std::uint64_t>(age().count())) * kPrime;
  if (trace_)
    std::fprintf(stderr, "%12.6f %s\n", static_cast<double>(age().count()) / 1e6, what.c_str());
}

void World::fail(const std::string& why) {
  note("FAILED " + why);
  if (failure_.empty())
    failure_ = "at " + std::to_string(static_cast<double>(age().count()) / 1e6) + " s: " + why;
}

void World::fill_random(std::span<std::byte> out) {
  for (std::byte& byte : out) byte = static_cast<std::byte>(random_.next());
}

const char* World::variable(const char* name) const {
  if (!current_) return nullptr;
  auto found = current_->variables.find(name);
  return found == current_->variables.end() ? nullptr : found->second.c_str();
}

void World::connect(const runtime::Endpoint& to, std::function<void(int, int)> done) {
  network_.connect(current_, to, std::move(done));
}
void World::end_process() {
  call_later(0us, [this, process = current_] { crash(*process, Farewell::kOrderly); });
}

int World::listen(runtime::Endpoint& at, std::function<void(int)> accepted) {
  return network_.listen(current_, at, std::move(accepted));
}
void World::stop_listening(const runtime::Endpoint& at) { network_.stop_listening(at); }

runtime::Result<std::unique_ptr<runtime::ChildProcess>> World::start_process(
    runtime::EventLoop& loop, const runtime::ProcessSpec& spec, runtime::ProcessHandlers handlers) {
  return start_child(*this, loop, spec, std::move(handlers));
}

}  // namespace sim
