// Calls and pulls between nodes in two network namespaces. A process has one cluster, so this one's
// figures come from another process of the same program, started with --networks-driver.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/micro/runtime_actors.h"
#include "bench/support/network_pair.h"
#include "bench/support/raw_socket.h"
#include "runtime/control/local_cluster.h"

namespace bench {

/// The last line that a command prints; empty when it fails.
inline std::string last_line_of(const std::string& command) {
  std::string last, line;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  for (int c; (c = std::fgetc(pipe)) != EOF;) {
    if (c != '\n')
      line.push_back(static_cast<char>(c));
    else
      last = std::exchange(line, "");
  }
  return ::pclose(pipe) == 0 ? last : "";
}

inline constexpr std::size_t kPullBytes = std::size_t{1} << 30;

/// Bytes a second of bringing an object of another node here, into memory that an earlier one was
/// in.
inline double pull_bytes_per_s(runtime::Runtime& rt, const runtime::ActorHandle<Target>& far) {
  constexpr int kPulls = 4;  // the first goes into fresh memory and does not count
  std::vector<double> taken;
  for (int i = 0; i < kPulls; ++i) {
    auto ref = far.call(&Target::make, std::uint64_t{kPullBytes});
    rt.wait(std::vector{ref}, 1);
    auto start = Clock::now();
    auto view = take(rt.objects().view(ref));
    if (i > 0) taken.push_back(seconds_since(start));
    if (view[0] != 1.0F || view[view.size() - 1] != 1.0F)
      fail("the pulled view has other values than were made");
  }
  return static_cast<double>(kPullBytes) / median(std::move(taken));
}

/// In the driver: calls an actor of a node that is not its own, and pulls what it makes.
inline nlohmann::ordered_json measure_far_calls(runtime::Runtime& rt, double seconds) {
  for (const runtime::NodeInfo& node : take(rt.cluster().state()).nodes) {
    if (node.node == rt.cluster().node_id()) continue;
    runtime::ActorOptions options{.node = node.node};
    auto actor = take(rt.spawn<Target>(options));
    nlohmann::ordered_json figures;
    figures["call_tcp_per_s"] =
        1 / time_per_call(seconds, 20, [&] { take(rt.get(actor.call(&Target::echo, 1))); });
    figures["pull_1gib_gbps"] = pull_bytes_per_s(rt, actor) / 1e9;
    return figures;
  }
  fail("the cluster has no second node");
}

/// Starts a cluster over both networks, with further arguments for its nodes, and measures in it.
inline nlohmann::ordered_json measure_cluster(const NetworkPair& networks,
                                              const std::string& arguments, double seconds) {
  const std::string starling = take(runtime::find_starling_program()).string();
  const std::filesystem::path sessions = "/tmp/starling-bench-" + std::to_string(::getpid()) + "n";
  const std::string environment =
      "env -u STARLING_ADDRESS STARLING_SESSION_ROOT=" + sessions.string() + " ";
  // Room for one object and a half: the next copy takes the memory of the one before.
  const std::string memory =
      " --object-store-memory " + std::to_string(kPullBytes + kPullBytes / 2);
  const std::string log = " 2>>" + sessions.string() + ".log";
  std::string head = last_line_of(environment + starling + " start --head --port 0 --bind " +
                                  networks.near() + arguments + memory + log);
  std::string far =
      last_line_of(networks.on_far_side() + environment + starling + " start --address " + head +
                   " --bind " + networks.far() + arguments + memory + log);
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  std::string said;
  if (!head.empty() && !far.empty()) {
    said = last_line_of(environment + program + " --address " + head +
                        " --networks-driver --seconds " + std::to_string(seconds) + log);
  }
  last_line_of(environment + starling + " stop" + log);
  auto driver = nlohmann::ordered_json::parse(said, nullptr, /*allow_exceptions=*/false);
  if (!driver.is_object())
    fail("measuring across networks failed; " + sessions.string() + ".log says more");
  std::filesystem::remove_all(sessions, error);
  std::filesystem::remove(sessions.string() + ".log", error);
  return driver;
}

/// Calls and pulls between two networks, encrypted and plain; nothing where there is no second
/// network.
inline nlohmann::ordered_json far_calls(double seconds) {
  auto networks = NetworkPair::create();
  if (!networks) return {};
  nlohmann::ordered_json figures;
  figures["tcp_round_trip_us"] =
      tcp_round_trip(networks->far().c_str(), seconds, [&] { networks->enter(); }) * 1e6;
  figures["raw_tcp_gbps"] =
      static_cast<double>(kPullBytes) /
      tcp_copy(networks->far().c_str(), kPullBytes, [&] { networks->enter(); }) / 1e9;
  const auto plain = measure_cluster(*networks, " --plain", seconds);
  const auto sealed = measure_cluster(*networks, "", seconds);
  figures.update(sealed);
  for (const auto& [name, value] : plain.items()) figures["plain_" + name] = value;
  figures["call_tcp_encrypted_over_plain_time"] =
      plain["call_tcp_per_s"].get<double>() / sealed["call_tcp_per_s"].get<double>();
  figures["pull_encrypted_over_plain_rate"] =
      sealed["pull_1gib_gbps"].get<double>() / plain["pull_1gib_gbps"].get<double>();
  return figures;
}

}  // namespace bench
