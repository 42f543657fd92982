// The cost of calls and objects, with the floor measured in the same run. The floor is raw round
// trips over a Unix socket and over TCP, and a memcpy. Actors are other processes. Starts its own
// cluster.
//   bench_runtime [--json] [--curve] [--seconds S]      S of measuring per figure (default 1)
// --json prints one object of plain numbers. --curve adds percentiles, calls by number of callers
// and actors and by size of argument, the machine and the commit. As root it measures between two
// network namespaces too.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/micro/runtime_actors.h"
#include "bench/micro/runtime_curve.h"
#include "bench/micro/runtime_networks.h"
#include "bench/support/machine.h"
#include "bench/support/options.h"
#include "bench/support/raw_socket.h"

namespace {

using namespace runtime;
using bench::Caller;
using bench::Clock;
using bench::fail;
using bench::seconds_since;
using bench::take;
using bench::Target;
using bench::time_per_call;

constexpr std::size_t kActors = 8;
constexpr std::size_t kLargeBytes = 100'000'000;

struct Options {
  bool json = false;
  bool curve = false;
  bool networks_driver = false;
  double seconds = 1;
};

double memcpy_gbps(double seconds, std::size_t bytes) {
  std::vector<char> from(bytes, 1), to(bytes, 2);
  return static_cast<double>(bytes) /
         time_per_call(seconds, 1, [&] { std::memcpy(to.data(), from.data(), bytes); }) / 1e9;
}

struct Bench {
  Runtime& rt;
  double seconds;
  nlohmann::ordered_json& figures;

  double node_rss_mib() {
    for (const NodeInfo& node : take(rt.cluster().state()).nodes) {
      if (node.node == rt.cluster().node_id())
        return bench::rss_mib("VmRSS", std::to_string(node.pid));
    }
    fail("the driver's node is not in its cluster");
  }

  void calls() {
    auto start = Clock::now();
    auto group = take(rt.spawn_group<Target>(kActors, {}));
    take(rt.objects().gather(group.call(&Target::echo, 1)));
    figures["actors8_create_s"] = seconds_since(start);
    const auto& actor = group[0];
    figures["worker_rss_mib"] = take(rt.get(actor.call(&Target::rss, "VmRSS")));
    // The floor right before what stands on it: this machine's speed may change within a run.
    figures["uds_round_trip_us"] = bench::unix_round_trip(seconds) * 1e6;
    figures["call_sync_per_s"] =
        1 / time_per_call(seconds, 20, [&] { take(rt.get(actor.call(&Target::echo, 1))); });
    constexpr int kPipeline = 5000;
    std::vector<ObjectRef<int>> refs;
    figures["call_async_per_s"] = kPipeline / time_per_call(seconds, 1, [&] {
                                    refs.clear();
                                    for (int i = 0; i < kPipeline; ++i)
                                      refs.push_back(actor.call(&Target::echo, i));
                                    take(rt.objects().gather(refs));
                                  });
    figures["fanout8_per_s"] = 1 / time_per_call(seconds, 20, [&] {
                                 take(rt.objects().gather(group.call(&Target::echo, 1)));
                               });
  }

  void shared_actors() {
    constexpr std::size_t kSharedActors = 10'000;
    const double own_before = bench::rss_mib("VmRSS");
    const double node_before = node_rss_mib();
    ActorOptions options;
    options.isolation = Isolation::kShared;
    const double worker_before =
        take(rt.get(take(rt.spawn<Target>(options)).call(&Target::rss, "VmRSS")));
    auto start = Clock::now();
    auto group = take(rt.spawn_group<Target>(kSharedActors, options));
    figures["actors10k_shared_create_s"] = seconds_since(start);
    take(rt.objects().gather(group.call(&Target::echo, 1)));
    const double per_actor = 1024.0 / kSharedActors;
    figures["shared_actor_worker_kib"] =
        (take(rt.get(group[0].call(&Target::rss, "VmRSS"))) - worker_before) * per_actor;
    figures["shared_actor_caller_kib"] = (bench::rss_mib("VmRSS") - own_before) * per_actor;
    figures["shared_actor_node_kib"] = (node_rss_mib() - node_before) * per_actor;
    if (Status status = rt.kill(group, std::chrono::seconds(30)); !status.ok())
      fail(status.to_string());
  }

  void objects() {
    figures["put_small_per_s"] =
        1 / time_per_call(seconds, 1000, [&] { take(rt.put(std::int64_t{7})); });
    std::vector<float> values(kLargeBytes / sizeof(float), 1.0F);
    figures["memcpy_gbps"] = memcpy_gbps(seconds, kLargeBytes);
    // The first put touches pages that were not used before; later ones find them again.
    auto start = Clock::now();
    take(rt.put(values));
    figures["put_100mb_first_gbps"] = kLargeBytes / seconds_since(start) / 1e9;
    figures["put_100mb_gbps"] =
        kLargeBytes / time_per_call(seconds, 1, [&] { take(rt.put(values)); }) / 1e9;
    auto ref = take(rt.put(values));
    figures["get_100mb_gbps"] =
        kLargeBytes / time_per_call(seconds, 1, [&] { take(rt.get(ref)); }) / 1e9;
  }

  void large_view() {
    auto maker = take(rt.spawn<Target>({}));
    auto ref = maker.call(&Target::make, std::uint64_t{1} << 30);
    rt.wait(std::vector{ref}, 1);
    double before = bench::rss_mib("RssAnon");
    auto start = Clock::now();
    auto view = take(rt.objects().view(ref));
    figures["view_1gib_ms"] = seconds_since(start) * 1e3;
    double sum = 0;
    for (std::size_t i = 0; i < view.size(); i += 1024) sum += view[i];
    if (sum != static_cast<double>(view.size()) / 1024)
      fail("the view has other values than were made");
    figures["get_rss_growth_mib"] = bench::rss_mib("RssAnon") - before;
    figures["node_rss_used_mib"] = node_rss_mib();
  }
};

void print_text(const nlohmann::ordered_json& figures) {
  for (const auto& [key, value] : figures.items()) {
    if (value.is_number())
      std::printf("%-22s %14.3f\n", key.c_str(), value.get<double>());
    else if (!value.is_array())
      std::printf("%-22s %s\n", key.c_str(), value.dump().c_str());
    else
      for (const auto& point : value) std::printf("%-22s %s\n", key.c_str(), point.dump().c_str());
  }
}

Status measure(Runtime& rt, const Options& options, double cluster_start) {
  nlohmann::ordered_json figures;
  figures["cluster_start_s"] = cluster_start;
  Bench run{rt, options.seconds, figures};
  figures["node_rss_mib"] = run.node_rss_mib();
  run.calls();
  run.shared_actors();
  figures["tasks_per_s"] = bench::tasks_per_s(rt, options.seconds);
  run.objects();
  run.large_view();
  figures.update(bench::far_calls(options.seconds));
  if (options.curve) {
    figures["callers_and_actors"] = bench::callers_and_actors(rt, options.seconds);
    figures["argument_sizes"] = bench::argument_sizes(rt, options.seconds);
    figures["machine"] = bench::machine();
    figures["commit"] = bench::commit();
  }
  if (options.json)
    std::printf("%s\n", figures.dump().c_str());
  else
    print_text(figures);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  bench::read_options(argc, argv,
                      {{"--json", &options.json},
                       {"--curve", &options.curve},
                       {"--seconds", &options.seconds},
                       {"--networks-driver", &options.networks_driver, false},
                       {"--address", std::monostate(), false}});  // which the runtime reads
  RuntimeOptions runtime_options;
  runtime_options.start_arguments = {"--object-store-memory", "4294967296"};
  const bool own_sessions = !::getenv("STARLING_WORKER") && !options.networks_driver;
  const std::string sessions = "/tmp/starling-bench-" + std::to_string(::getpid());
  if (own_sessions) {  // its own cluster also when another one runs
    ::unsetenv("STARLING_ADDRESS");
    ::setenv("STARLING_SESSION_ROOT", sessions.c_str(), 1);
  }
  auto start = Clock::now();
  Runtime rt(argc, argv, runtime_options);
  bench::register_actors(rt);
  int code = rt.run([&](Runtime& runtime) -> Status {
    if (options.networks_driver) {
      std::printf("%s\n", bench::measure_far_calls(runtime, options.seconds).dump().c_str());
      return {};
    }
    auto first = take(runtime.spawn<Target>({}));
    take(runtime.get(first.call(&Target::echo, 1)));
    double cluster_start = seconds_since(start);
    if (Status status = runtime.kill(first); !status.ok()) return status;
    return measure(runtime, options, cluster_start);
  });
  std::error_code ignored;
  if (own_sessions) std::filesystem::remove_all(sessions, ignored);
  return code;
}
