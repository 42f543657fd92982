// Options of the autoscaler: limits, types of nodes, how long it waits for what. config_file.h
// reads it from YAML.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "placement/resource/resources.h"
#include "runtime/control/membership.h"

namespace placement {

/// How a node is paid for: spot nodes are cheap and may be taken away.
enum class Capacity { kOnDemand, kSpot };
std::string_view to_string(Capacity capacity);  // "on-demand", "spot"

// Labels of the nodes that the autoscaler adds, next to those of their type.
inline constexpr std::string_view kAutoscalerIdLabel =
    "starling.io/autoscaler-id";  // by which it knows them again
inline constexpr std::string_view kNodeTypeLabel = "starling.io/node-type";
inline constexpr std::string_view kCapacityLabel = "starling.io/capacity";  // "spot" or "on-demand"

struct SpotOptions {
  double share = 0;  // of the nodes beyond the base: 0 (all on demand) to 1 (all spot)
  std::size_t on_demand_base = 0;  // this number is on demand in any case
  // When spot nodes fail to come or are lost so often within the window, nodes on demand stand in
  // for a while.
  std::size_t failures = 2;
  std::chrono::milliseconds window = std::chrono::minutes(10);
  std::chrono::milliseconds fallback = std::chrono::minutes(10);  // 0: never, spot is waited for
  bool operator==(const SpotOptions&) const = default;
};

struct NodeType {
  std::string name;
  Resources resources;
  runtime::Labels labels;
  std::size_t min_nodes = 0;
  std::size_t max_nodes = 0;
  SpotOptions spot;
  bool operator==(const NodeType&) const = default;

  /// The labels that a node of this type is started with.
  runtime::Labels labels_of(const std::string& id, Capacity capacity) const;
};

struct ProviderOptions {
  enum class Kind { kLocal, kCommand };
  Kind kind = Kind::kLocal;
  std::vector<std::string> command;                             // program and first arguments
  std::chrono::milliseconds timeout = std::chrono::minutes(1);  // for each run of it
  std::size_t parallel = 8;                                     // runs at once
  bool operator==(const ProviderOptions&) const = default;
};

struct AutoscalerConfig {
  static constexpr std::size_t kNodesMax = 1000;
  static constexpr std::size_t kTypesMax = 100;

  // Of all nodes in the cluster: the one next to the head and those that others have started count.
  std::size_t min_nodes = 0;
  std::size_t max_nodes = 0;
  std::vector<NodeType> types;  // where several are as good, the first is taken
  std::chrono::milliseconds idle_timeout =
      std::chrono::minutes(5);  // a node without work for this long is removed
  std::chrono::milliseconds up_cooldown =
      std::chrono::seconds(5);  // between two rounds of additions
  std::chrono::milliseconds down_cooldown =
      std::chrono::minutes(1);  // from any change until a removal
  std::chrono::milliseconds start_timeout =
      std::chrono::minutes(10);  // a node that has not joined by then is given up
  std::chrono::milliseconds retry_first =
      std::chrono::seconds(5);  // after a failure; doubles with each that follows
  std::chrono::milliseconds retry_max = std::chrono::minutes(5);
  std::chrono::milliseconds interval = std::chrono::seconds(1);  // between two looks at the cluster
  std::chrono::milliseconds stop_timeout =
      std::chrono::seconds(30);  // for removing all nodes when the cluster stops
  ProviderOptions provider;
  bool operator==(const AutoscalerConfig&) const = default;

  const NodeType* type(std::string_view name) const;
};

}  // namespace placement
