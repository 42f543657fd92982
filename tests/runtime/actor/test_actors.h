// Actors for the tests that run a real cluster. The test program is its own driver and worker.
#pragma once

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "call_actors.h"
#include "cycle_actors.h"
#include "execution_actors.h"
#include "lifecycle_actors.h"
#include "runtime/runtime.h"
#include "state_actors.h"
#include "tests/support/gate.h"
#include "tests/support/pauses.h"

namespace runtime::test {

class Counter {
 public:
  explicit Counter(int start = 0) : total_(start) {}
  int add(int n) { return total_ += n; }
  int add_after(ObjectRef<void>, int n) { return add(n); }
  int total() const { return total_; }
  Status refuse(const std::string& why) { return resource_exhausted(why); }
  void fail(const std::string& text) { throw std::runtime_error(text); }
  void fail_oddly() { throw 42; }
  void throw_text(bool plain) {
    if (plain) throw "plain words";
    throw std::string("words in a string");
  }
  void throw_status(const std::string& why) { throw resource_exhausted(why); }
  void throw_silence() {
    struct Silent : std::exception {
      const char* what() const noexcept override { return nullptr; }
    };
    throw Silent();
  }
  int sleep_ms(int ms) {
    support::work_for(std::chrono::milliseconds(ms));
    return ms;
  }
  /// 1 once the gate at that path is open.
  int pass(const std::string& gate) { return support::Gate(gate).pass() ? 1 : 0; }
  int pid() const { return ::getpid(); }
  void print(const std::string& text) {
    std::printf("%s\n", text.c_str());
    std::fprintf(stderr, "err %s\n", text.c_str());
  }
  void crash_here() { *nowhere_ = 1; }
  void abort_here() { std::abort(); }
  std::string variable(const std::string& name) const {
    const char* value = std::getenv(name.c_str());
    return value ? value : "";
  }

 private:
  int total_;
  // Not null, or the sanitizer of undefined behaviour would end the process in its own way.
  volatile int* nowhere_ = reinterpret_cast<volatile int*>(64);
};

struct Report {
  std::string title;
  std::map<std::string, std::vector<double>> columns;
  auto fields() { return std::tie(title, columns); }
  bool operator==(const Report&) const = default;
};

/// Holds on to what it is given, calls others, makes objects.
class Broker {
 public:
  Broker(Runtime& runtime, std::string name) : runtime_(runtime), name_(std::move(name)) {}

  std::string name() const { return name_; }
  Report extend(Report report, const std::string& column, const std::vector<double>& values) {
    report.columns[column] = values;
    return report;
  }

  Result<int> add_through(ActorHandle<Counter> counter, int n) {
    return runtime_.get(counter.call(&Counter::add, n));
  }
  ActorHandle<Counter> pass_on(ActorHandle<Counter> counter) { return counter; }

  std::vector<float> make(std::uint64_t count, float value) {
    return std::vector<float>(count, value);
  }
  std::vector<float> make_slowly(int ms, std::uint64_t count, float value) {
    support::work_for(std::chrono::milliseconds(ms));
    return make(count, value);
  }
  double sum(const std::vector<float>& values) {
    double total = 0;
    for (float value : values) total += value;
    return total;
  }
  double sum_view(ArrayView<float> values) {
    double total = 0;
    for (float value : values) total += value;
    return total;
  }
  /// Where in the store's file the bytes lie: "<inode>:<offset>".
  std::string where(ArrayView<float> values) {
    std::ifstream maps("/proc/self/maps");
    const auto address = reinterpret_cast<std::uintptr_t>(values.data());
    for (std::string line; std::getline(maps, line);) {
      unsigned long start = 0, end = 0, offset = 0, inode = 0;
      if (std::sscanf(line.c_str(), "%lx-%lx %*s %lx %*s %lu", &start, &end, &offset, &inode) != 4)
        continue;
      if (start <= address && address < end && inode != 0)
        return std::to_string(inode) + ":" + std::to_string(offset + address - start);
    }
    return "private memory of " + std::to_string(::getpid());
  }
  Result<double> sum_ref(ObjectRef<std::vector<float>> ref) {
    auto view = runtime_.objects().view(ref);
    if (!view.ok()) return view.status();
    return sum_view(*view);
  }

  void keep(ObjectRef<std::vector<float>> ref) { kept_ = std::move(ref); }
  ObjectRef<std::vector<float>> kept() const { return kept_; }
  Result<double> sum_kept() { return sum_ref(kept_); }
  void forget() { kept_ = {}; }
  Result<ObjectRef<std::vector<float>>> put(std::uint64_t count, float value) {
    return runtime_.put(std::vector<float>(count, value));
  }

  Result<int> spawn_and_add(int start, int n) {
    auto counter = runtime_.spawn<Counter>({}, start);
    if (!counter.ok()) return counter.status();
    return runtime_.get(counter->call(&Counter::add, n));
  }
  Result<std::string> meet(const std::string& key, const std::string& value) {
    if (!value.empty()) {
      if (Status status = runtime_.kv().put(key, value); !status.ok()) return status;
    }
    return runtime_.kv().get(key);
  }

 private:
  Runtime& runtime_;
  std::string name_;
  ObjectRef<std::vector<float>> kept_;
};

/// Cannot always be made.
class Picky {
 public:
  static Result<std::unique_ptr<Picky>> create(int value) {
    if (value < 0) return invalid_argument("value " + std::to_string(value) + " is below zero");
    if (value == 0) throw std::runtime_error("zero is not even refused politely");
    if (value == 13) return std::unique_ptr<Picky>();
    return std::unique_ptr<Picky>(new Picky(value));
  }
  int value() const { return value_; }

 private:
  explicit Picky(int value) : value_(value) {}
  int value_;
};

/// Knows its place in a group.
class Member {
 public:
  Member(int rank, std::string team) : rank_(rank), team_(std::move(team)) {}
  std::string who() const { return team_ + std::to_string(rank_); }
  int times(int n) const { return rank_ * n; }
  std::vector<int> scale(std::vector<int> values) const {
    for (int& value : values) value *= rank_;
    return values;
  }
  Result<int> fail_on(int rank) const {
    if (rank == rank_) return invalid_argument("not with me");
    return rank_;
  }

 private:
  int rank_;
  std::string team_;
};

/// Forks.
class Forking {
 public:
  explicit Forking(Runtime& runtime) : runtime_(runtime) {}
  Result<int> total_of(ActorHandle<Counter> counter) {
    return runtime_.get(counter.call(&Counter::total));
  }
  /// What is wrong about what a child gets that calls; empty: nothing.
  std::string child_calls(ActorHandle<Counter> counter) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      const Status status = total_of(counter).status();
      ::_exit(status.message().find("fork()") == std::string::npos ? 1 : 0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status == 0 ? "" : "the child ended with " + std::to_string(status);
  }

 private:
  Runtime& runtime_;
};

struct NeverRegistered {
  int method() { return 0; }
};

/// Next to their tests.
void register_stream_actors(Runtime& rt);
void register_coroutine_actors(Runtime& rt);

inline void register_test_actors(Runtime& rt) {
  register_execution_actors(rt);
  register_stream_actors(rt);
  register_coroutine_actors(rt);
  register_lifecycle_actors(rt);
  register_state_actors(rt);
  register_call_actors(rt);
  register_cycle_actors(rt);
  rt.register_actor<Forking>("Forking", &Forking::child_calls, &Forking::total_of);
  rt.register_actor<Counter>("Counter", &Counter::add, &Counter::add_after, &Counter::total,
                             &Counter::refuse, &Counter::fail, &Counter::fail_oddly,
                             &Counter::throw_text, &Counter::throw_status, &Counter::throw_silence,
                             &Counter::sleep_ms, &Counter::pass, &Counter::pid, &Counter::print,
                             &Counter::crash_here, &Counter::abort_here, &Counter::variable);
  rt.register_actor<Broker>("Broker", &Broker::name, &Broker::extend, &Broker::add_through,
                            &Broker::pass_on, &Broker::make, &Broker::make_slowly, &Broker::sum,
                            &Broker::sum_view, &Broker::where, &Broker::sum_ref, &Broker::keep,
                            &Broker::kept, &Broker::sum_kept, &Broker::forget, &Broker::put,
                            &Broker::spawn_and_add, &Broker::meet);
  rt.register_actor<Picky>("Picky", &Picky::value);
  rt.register_actor<Member>("Member", &Member::who, &Member::times, &Member::scale,
                            &Member::fail_on);
}

}  // namespace runtime::test
