// NodeRecord: a node that the autoscaler has asked for. Recorded with the head before anything is
// asked of a provider, so that the process that continues after a crash knows of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "placement/autoscaler/config.h"
#include "runtime/core/ids.h"
#include "runtime/core/result.h"

namespace placement {

enum class NodePhase {
  kWanted,    // the provider is asked for it, again with the same id if need be
  kStarting,  // the provider has it; it has not joined
  kJoined,
  kRetiring,  // the head is asked to give it no new work
  kRemoving,  // the provider is asked to end it, until it says that it has
};
std::string_view to_string(
    NodePhase phase);  // "wanted", "starting", "joined", "retiring", "removing"

struct NodeRecord {
  std::string id;
  std::string type;
  Capacity capacity = Capacity::kOnDemand;
  NodePhase phase = NodePhase::kWanted;
  runtime::NodeId node = {};  // once it has joined
  std::string reason = {};    // what it was added for; from kRetiring on: why it is to go
  bool operator==(const NodeRecord&) const = default;
};

/// The records as one text (JSON), for the head to keep.
std::string encode_records(const std::vector<NodeRecord>& records);
/// Errors: kInvalidArgument, naming what is malformed; kUnimplemented: a newer version wrote it.
runtime::Result<std::vector<NodeRecord>> decode_records(const std::string& text);

}  // namespace placement
