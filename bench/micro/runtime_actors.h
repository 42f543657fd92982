// The actors that bench_runtime calls, and those that call for it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "bench/support/take.h"
#include "bench/support/timing.h"
#include "runtime/runtime.h"

namespace bench {

/// A figure of /proc/PID/status in MiB, as "RssAnon".
inline double rss_mib(const std::string& field, const std::string& pid = "self") {
  std::ifstream status("/proc/" + pid + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::atof(line.c_str() + field.size() + 1) / 1024;
  }
  return 0;
}

class Target {
 public:
  int echo(int n) { return n; }
  std::vector<float> make(std::uint64_t bytes) {
    return std::vector<float>(bytes / sizeof(float), 1.0F);
  }
  double rss(const std::string& field) { return rss_mib(field); }
  /// Takes an argument and reads a word of each of its pages.
  double touch(runtime::ArrayView<float> values) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); i += 1024) sum += values[i];
    return sum;
  }
};

/// Calls targets in turn, one call at a time, for `seconds`. Returns what each call took, in
/// microseconds.
inline std::vector<float> latencies_us(runtime::Runtime& rt,
                                       const std::vector<runtime::ActorHandle<Target>>& targets,
                                       double seconds) {
  std::vector<float> taken;
  for (auto start = Clock::now(); seconds_since(start) < seconds;) {
    auto before = Clock::now();
    take(rt.get(targets[taken.size() % targets.size()].call(&Target::echo, 1)));
    taken.push_back(static_cast<float>(seconds_since(before) * 1e6));
  }
  return taken;
}

/// Calls targets in turn without waiting for each, for `seconds`. Returns calls per second.
inline double pipelined_per_s(runtime::Runtime& rt,
                              const std::vector<runtime::ActorHandle<Target>>& targets,
                              double seconds) {
  constexpr int kPipeline = 2000;
  std::vector<runtime::ObjectRef<int>> refs;
  long calls = 0;
  auto start = Clock::now();
  while (seconds_since(start) < seconds) {
    refs.clear();
    for (int i = 0; i < kPipeline; ++i)
      refs.push_back(targets[static_cast<std::size_t>(i) % targets.size()].call(&Target::echo, i));
    take(rt.objects().gather(refs));
    calls += kPipeline;
  }
  return static_cast<double>(calls) / seconds_since(start);
}

/// The task.
inline int add_one(int n) { return n + 1; }

/// Runs tasks without waiting for each, for `seconds`. Returns tasks per second.
inline double tasks_per_s(runtime::Runtime& rt, double seconds) {
  constexpr int kPipeline = 2000;
  std::vector<runtime::ObjectRef<int>> refs;
  long tasks = 0;
  take(rt.get(rt.task(&add_one, 1)));  // a worker is there
  auto start = Clock::now();
  while (seconds_since(start) < seconds) {
    refs.clear();
    for (int i = 0; i < kPipeline; ++i) refs.push_back(rt.task(&add_one, i));
    take(rt.objects().gather(refs));
    tasks += kPipeline;
  }
  return static_cast<double>(tasks) / seconds_since(start);
}

/// A caller in its own process.
class Caller {
 public:
  explicit Caller(runtime::Runtime& rt) : rt_(rt) {}
  std::vector<float> one_by_one(const std::vector<runtime::ActorHandle<Target>>& targets,
                                double seconds) {
    return latencies_us(rt_, targets, seconds);
  }
  double pipelined(const std::vector<runtime::ActorHandle<Target>>& targets, double seconds) {
    return pipelined_per_s(rt_, targets, seconds);
  }

 private:
  runtime::Runtime& rt_;
};

inline void register_actors(runtime::Runtime& rt) {
  rt.register_actor<Target>("Target", &Target::echo, &Target::make, &Target::rss, &Target::touch);
  rt.register_function("add_one", &add_one);
  rt.register_actor<Caller>("Caller", &Caller::one_by_one, &Caller::pipelined);
}

}  // namespace bench
