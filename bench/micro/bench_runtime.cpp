// What calls and objects cost, beside the floor measured in the same run: a raw Unix-socket round trip and a memcpy. Actors are other
// processes. Starts a cluster of its own.
//   bench_runtime [--json] [--seconds S]      S of measuring per figure (default 1)
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/runtime.h"

namespace {

using namespace runtime;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMessageBytes = 128;  // about what a small call takes on the wire
constexpr int kRounds = 5;                  // medians are over these
constexpr std::size_t kActors = 8;

class Target {
 public:
  int echo(int n) { return n; }
  std::vector<float> make(std::uint64_t bytes) { return std::vector<float>(bytes / sizeof(float), 1.0F); }
  double rss_mib(const std::string& field) { return read_rss_mib(field); }

  /// A figure of /proc/self/status, as "RssAnon".
  static double read_rss_mib(const std::string& field, const std::string& pid = "self") {
    std::ifstream status("/proc/" + pid + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(field + ":")) return std::atof(line.c_str() + field.size() + 1) / 1024;
    }
    return 0;
  }
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Seconds per call of `step`: the median over the rounds, each of at least one call.
template <class Step>
double time_per_call(double seconds, int batch, Step&& step) {
  step();
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    auto start = Clock::now();
    long calls = 0;
    do {
      for (int i = 0; i < batch; ++i) step();
      calls += batch;
    } while (seconds_since(start) < seconds / kRounds);
    rounds.push_back(seconds_since(start) / static_cast<double>(calls));
  }
  return median(rounds);
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "error: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T take(Result<T> result) {
  if (!result.ok()) fail(result.status().to_string());
  return *std::move(result);
}

bool read_all(int fd, char* data, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    ssize_t got = ::recv(fd, data + done, size - done, 0);
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

/// A tight ping-pong with another process: what no call can be faster than.
double raw_round_trip(double seconds) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) fail("socketpair");
  pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(pair[0]);
    char bytes[kMessageBytes];
    while (read_all(pair[1], bytes, sizeof bytes)) (void)::send(pair[1], bytes, sizeof bytes, MSG_NOSIGNAL);
    ::_exit(0);
  }
  ::close(pair[1]);
  char bytes[kMessageBytes] = {};
  double result = time_per_call(seconds, 100, [&] {
    if (::send(pair[0], bytes, sizeof bytes, MSG_NOSIGNAL) != sizeof bytes || !read_all(pair[0], bytes, sizeof bytes)) fail("ping-pong");
  });
  ::close(pair[0]);
  ::waitpid(child, nullptr, 0);
  return result;
}

double memcpy_gbps(double seconds, std::size_t bytes) {
  std::vector<char> from(bytes, 1), to(bytes, 2);
  return static_cast<double>(bytes) / time_per_call(seconds, 1, [&] { std::memcpy(to.data(), from.data(), bytes); }) / 1e9;
}

struct Bench {
  Runtime& rt;
  double seconds;
  nlohmann::ordered_json& figures;

  void calls() {
    auto start = Clock::now();
    auto group = take(rt.spawn_group<Target>(kActors, {}));
    take(rt.gather(group.call(&Target::echo, 1)));
    figures["actors8_create_s"] = seconds_since(start);
    const auto& actor = group[0];
    figures["worker_rss_mib"] = take(rt.get(actor.call(&Target::rss_mib, "VmRSS")));
    figures["call_sync_per_s"] = 1 / time_per_call(seconds, 20, [&] { take(rt.get(actor.call(&Target::echo, 1))); });
    constexpr int kPipeline = 5000;
    std::vector<ObjectRef<int>> refs;
    figures["call_async_per_s"] = kPipeline / time_per_call(seconds, 1, [&] {
      refs.clear();
      for (int i = 0; i < kPipeline; ++i) refs.push_back(actor.call(&Target::echo, i));
      take(rt.gather(refs));
    });
    figures["fanout8_per_s"] = 1 / time_per_call(seconds, 20, [&] { take(rt.gather(group.call(&Target::echo, 1))); });
  }

  void objects() {
    figures["put_small_per_s"] = 1 / time_per_call(seconds, 1000, [&] { take(rt.put(std::int64_t{7})); });
    constexpr std::size_t kBytes = 100'000'000;
    std::vector<float> values(kBytes / sizeof(float), 1.0F);
    figures["memcpy_gbps"] = memcpy_gbps(seconds, kBytes);
    figures["put_100mb_gbps"] = kBytes / time_per_call(seconds, 1, [&] { take(rt.put(values)); }) / 1e9;
    figures["get_100mb_gbps"] = kBytes / [&] {
      auto ref = take(rt.put(values));
      return time_per_call(seconds, 1, [&] { take(rt.get(ref)); });
    }() / 1e9;

    auto maker = take(rt.spawn<Target>({}));
    auto ref = maker.call(&Target::make, std::uint64_t{1} << 30);
    rt.wait(std::vector{ref}, 1);
    double before = Target::read_rss_mib("RssAnon");
    auto start = Clock::now();
    auto view = take(rt.get_view(ref));
    figures["get_view_1gib_ms"] = seconds_since(start) * 1e3;
    double sum = 0;
    for (std::size_t i = 0; i < view.size(); i += 1024) sum += view[i];
    if (sum != static_cast<double>(view.size()) / 1024) fail("the view has other values than were made");
    figures["get_rss_growth_mib"] = Target::read_rss_mib("RssAnon") - before;
  }
};

Status bench(Runtime& rt, double seconds, bool json, double cluster_start) {
  nlohmann::ordered_json figures;
  figures["cluster_start_s"] = cluster_start;
  for (const NodeInfo& node : take(rt.cluster_state()).nodes) {
    if (node.node == rt.node_id()) figures["node_rss_mib"] = Target::read_rss_mib("VmRSS", std::to_string(node.pid));
  }
  figures["uds_round_trip_us"] = raw_round_trip(seconds) * 1e6;
  Bench run{rt, seconds, figures};
  run.calls();
  run.objects();
  if (json) {
    std::printf("%s\n", figures.dump().c_str());
  } else {
    for (const auto& [key, value] : figures.items()) std::printf("%-22s %14.3f\n", key.c_str(), value.get<double>());
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  double seconds = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) json = true;
    else if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) seconds = std::atof(argv[++i]);
  }
  RuntimeOptions options;
  options.start_arguments = {"--object-store-memory", "4294967296"};
  // A cluster of its own also when another one runs.
  ::unsetenv("STARLING_ADDRESS");
  if (!::getenv("STARLING_WORKER")) ::setenv("STARLING_SESSION_ROOT", ("/tmp/starling-bench-" + std::to_string(::getpid())).c_str(), 1);
  auto start = Clock::now();
  Runtime rt(argc, argv, options);
  rt.register_actor<Target>("Target", &Target::echo, &Target::make, &Target::rss_mib);
  return rt.run([&](Runtime& runtime) {
    auto first = take(runtime.spawn<Target>({}));
    take(runtime.get(first.call(&Target::echo, 1)));
    double cluster_start = seconds_since(start);
    if (Status status = runtime.kill(first); !status.ok()) return status;
    return bench(runtime, seconds, json, cluster_start);
  });
}
