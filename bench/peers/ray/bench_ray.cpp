// bench_runtime's workload on Ray's C++ API, with the same keys. run.sh builds this file twice, as
// a program and as the library that Ray's workers load, since they are separate programs.
//   bench_ray LIBRARY_FOLDER SECONDS
#include <ray/api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/support/timing.h"

using bench::Clock;
using bench::seconds_since;
using bench::time_per_call;

class Target {
 public:
  static Target* create() { return new Target; }
  int echo(int n) { return n; }
};
RAY_REMOTE(Target::create, &Target::echo);

namespace {

constexpr std::size_t kActors = 8;
constexpr std::size_t kLargeBytes = 100'000'000;

void wait_for_all(const std::vector<ray::ObjectRef<int>>& refs) { ray::Get(refs); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const double seconds = std::atof(argv[2]);
  std::vector<std::pair<const char*, double>> figures;
  auto start = Clock::now();
  ray::RayConfig config;
  config.code_search_path = {argv[1]};
  config.head_args = {
      "--num-cpus",          "16",   "--object-store-memory", "1000000000", "--disable-usage-stats",
      "--include-dashboard", "false"};
  ray::Init(config);
  {
    auto first = ray::Actor(Target::create).Remote();
    first.Task(&Target::echo).Remote(1).Get();
    figures.emplace_back("cluster_start_s", seconds_since(start));
    first.Kill();
  }
  start = Clock::now();
  std::vector<ray::ActorHandle<Target>> group;
  for (std::size_t i = 0; i < kActors; ++i) group.push_back(ray::Actor(Target::create).Remote());
  auto fan_out = [&] {
    std::vector<ray::ObjectRef<int>> refs;
    for (auto& actor : group) refs.push_back(actor.Task(&Target::echo).Remote(1));
    wait_for_all(refs);
  };
  fan_out();
  figures.emplace_back("actors8_create_s", seconds_since(start));
  auto& actor = group[0];
  figures.emplace_back("call_sync_per_s", 1 / time_per_call(seconds, 20, [&] {
                                            actor.Task(&Target::echo).Remote(1).Get();
                                          }));
  constexpr int kPipeline = 1000;
  figures.emplace_back("call_async_per_s", kPipeline / time_per_call(seconds, 1, [&] {
                                             std::vector<ray::ObjectRef<int>> refs;
                                             for (int i = 0; i < kPipeline; ++i)
                                               refs.push_back(actor.Task(&Target::echo).Remote(i));
                                             wait_for_all(refs);
                                           }));
  figures.emplace_back("fanout8_per_s", 1 / time_per_call(seconds, 5, fan_out));
  figures.emplace_back("put_small_per_s",
                       1 / time_per_call(seconds, 20, [&] { ray::Put(std::int64_t{7}); }));
  std::vector<float> values(kLargeBytes / sizeof(float), 1.0F);
  figures.emplace_back("put_100mb_gbps",
                       kLargeBytes / time_per_call(seconds, 1, [&] { ray::Put(values); }) / 1e9);
  auto ref = ray::Put(values);
  figures.emplace_back("get_100mb_gbps",
                       kLargeBytes / time_per_call(seconds, 1, [&] { ref.Get(); }) / 1e9);
  for (std::size_t i = 0; i < figures.size(); ++i)
    std::printf("%s\"%s\":%.9g", i ? "," : "{", figures[i].first, figures[i].second);
  std::printf("}\n");
  std::fflush(stdout);
  ray::Shutdown();
}
