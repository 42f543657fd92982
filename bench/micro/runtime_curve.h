// Growth of costs: with callers and actors, each a process, and with the size of an argument.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/micro/runtime_actors.h"

namespace bench {

inline nlohmann::ordered_json latency_figures(const std::vector<float>& taken_us) {
  return {{"p50_us", percentile(taken_us, 0.5)},
          {"p99_us", percentile(taken_us, 0.99)},
          {"p999_us", percentile(taken_us, 0.999)}};
}

/// 1:1, 1:n and n:n: calls per second of all callers together, one at a time (with what one takes)
/// and pipelined.
inline nlohmann::ordered_json callers_and_actors(runtime::Runtime& rt, double seconds) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (auto [callers, actors] : std::vector<std::pair<std::size_t, std::size_t>>{
           {1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 2}, {4, 4}, {8, 8}}) {
    auto target_group = take(rt.spawn_group<Target>(actors, {}));
    auto caller_group = take(rt.spawn_group<Caller>(callers, {}));
    std::vector<runtime::ActorHandle<Target>> targets;
    for (std::size_t i = 0; i < actors; ++i) targets.push_back(target_group[i]);
    take(rt.objects().gather(
        caller_group.call(&Caller::pipelined, targets, 0.05)));  // connects each pair
    std::vector<float> all;
    for (auto& taken :
         take(rt.objects().gather(caller_group.call(&Caller::one_by_one, targets, seconds))))
      all.insert(all.end(), taken.begin(), taken.end());
    double pipelined = 0;
    for (double rate :
         take(rt.objects().gather(caller_group.call(&Caller::pipelined, targets, seconds))))
      pipelined += rate;
    nlohmann::ordered_json point{{"callers", callers},
                                 {"actors", actors},
                                 {"sync_per_s", static_cast<double>(all.size()) / seconds}};
    point.update(latency_figures(all));
    point["async_per_s"] = pipelined;
    points.push_back(std::move(point));
    for (const runtime::Status& status : {rt.kill(target_group), rt.kill(caller_group)}) {
      if (!status.ok()) fail(status.to_string());
    }
  }
  return points;
}

/// Calls with an argument of 1 KiB to 16 MiB that the method reads.
inline nlohmann::ordered_json argument_sizes(runtime::Runtime& rt, double seconds) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  auto target = take(rt.spawn<Target>({}));
  for (std::size_t bytes :
       {std::size_t{1} << 10, std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{16} << 20}) {
    std::vector<float> argument(bytes / sizeof(float), 1.0F), taken;
    for (int i = 0; i < 20; ++i)
      take(rt.get(target.call(&Target::touch, argument)));  // slabs are leased and touched
    auto start = Clock::now();
    while (seconds_since(start) < seconds) {
      auto before = Clock::now();
      take(rt.get(target.call(&Target::touch, argument)));
      taken.push_back(static_cast<float>(seconds_since(before) * 1e6));
    }
    const double rate = static_cast<double>(taken.size()) / seconds_since(start);
    nlohmann::ordered_json point{{"argument_bytes", bytes},
                                 {"calls_per_s", rate},
                                 {"gbps", rate * static_cast<double>(bytes) / 1e9}};
    point.update(latency_figures(taken));
    points.push_back(std::move(point));
  }
  if (runtime::Status status = rt.kill(target); !status.ok()) fail(status.to_string());
  return points;
}

}  // namespace bench
