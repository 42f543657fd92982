#include "rl/app/all_reduce.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "rl/app/command_line.h"
#include "rl/comm/all_reduce_probe.h"

namespace rl {

namespace {

constexpr int kRounds = 3;
constexpr std::chrono::seconds kPatience{60};

using Probes = std::vector<runtime::ActorHandle<AllReduceProbe>>;

double free_gpus(const runtime::NodeInfo& node) {
  const auto gpus = node.available.find("GPU");
  return gpus == node.available.end() ? 0 : gpus->second;
}

/// The version that all nodes can use. Errors: the first node's that can use none.
runtime::Result<std::string> nccl_version(runtime::Runtime& runtime, const Probes& probes,
                                          const std::vector<runtime::NodeInfo>& nodes) {
  std::string version;
  for (std::size_t rank = 0; rank < probes.size(); ++rank) {
    auto found = runtime.get(probes[rank].call(&AllReduceProbe::nccl_version), kPatience);
    if (!found.ok())
      return found.status().with_context("node " + nodes[rank].node.short_hex() + " at " +
                                         nodes[rank].address);
    version = *found;
  }
  return version;
}

/// An actor on each node; all at once, and then all of their answers.
runtime::Status run_all_reduce(runtime::Runtime& runtime, std::uint64_t bytes) {
  if (runtime::Status started = runtime.start(); !started.ok()) return started;
  const auto cluster = runtime.cluster().state();
  if (!cluster.ok()) return cluster.status();
  Probes probes;
  const std::string group = "doctor-" + runtime::ActorId::random().short_hex();
  std::vector<runtime::NodeInfo> nodes = cluster->nodes;
  std::erase_if(nodes, [](const runtime::NodeInfo& node) {
    return !node.alive || node.drain;
  });  // those take no actors
  const int size = static_cast<int>(nodes.size());
  std::string without_nccl = why_not_nccl(nodes), backend = "Gloo";
  for (const runtime::NodeInfo& node : nodes) {
    runtime::ActorOptions options{.cpus = 0};
    if (without_nccl.empty()) options.gpus = 1;
    options.node = node.node;
    auto probe =
        runtime.spawn<AllReduceProbe>(options, static_cast<int>(probes.size()), size, group);
    if (!probe.ok())
      return probe.status().with_context("node " + node.node.short_hex() + " at " + node.address);
    probes.push_back(*probe);
  }
  if (without_nccl.empty()) {
    const auto version = nccl_version(runtime, probes, nodes);
    if (version.ok())
      backend = "NCCL " + *version;
    else
      without_nccl = version.status().message();
  }
  const auto method =
      without_nccl.empty() ? &AllReduceProbe::measure_nccl : &AllReduceProbe::measure;
  std::vector<runtime::ObjectRef<AllReduceResult>> results;
  for (const auto& probe : probes)
    results.push_back(probe.call(method, bytes / sizeof(float), kRounds));
  double seconds = 0;
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    const auto result = runtime.get(results[rank], kPatience);
    const std::string where = backend + ", node " + nodes[rank].address;
    if (!result.ok()) return result.status().with_context(where);
    if (!result->correct) return runtime::internal_error(where + ": the sum is wrong");
    seconds = std::max(seconds, result->seconds);
  }
  // A ring moves 2 (n - 1) / n of the bytes over each node's link.
  const double moved = size > 1 ? 2.0 * (size - 1) / size * static_cast<double>(bytes) : 0;
  const double bus = seconds > 0 ? moved / seconds : 0;
  std::cout << nlohmann::ordered_json{{"backend", backend},
                                      {"nodes", size},
                                      {"seconds", seconds},
                                      {"bus_bytes_per_s", bus},
                                      {"why_not_nccl", without_nccl}}
                   .dump()
            << '\n';
  return {};
}

}  // namespace

std::string why_not_nccl(std::span<const runtime::NodeInfo> nodes) {
  for (const runtime::NodeInfo& node : nodes) {
    const std::string where = "node " + node.node.short_hex() + " at " + node.address;
    const auto gpus = node.resources.find("GPU");
    if (gpus == node.resources.end() || gpus->second < 1) return where + " has no GPU";
    if (free_gpus(node) < 1) return "all GPUs of " + where + " are in use";
  }
  return "";
}

int all_reduce_command(runtime::Runtime& runtime, int argc, char** argv) {
  CLI::App app(
      "An all-reduce between all nodes of a cluster, as starling doctor --cluster runs it.",
      "starling-rl all-reduce");
  std::string address;
  std::uint64_t bytes = 64 << 20;
  app.add_option("--address", address, "the cluster's HOST:PORT");
  app.add_option("--bytes", bytes, "of the vector that is summed")
      ->check(CLI::Range(std::uint64_t{4}, std::uint64_t{1} << 30));
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  const runtime::Status status = run_all_reduce(runtime, bytes);
  return status.ok() ? 0 : fail(status);
}

}  // namespace rl
