// The rules of restarts, and what makes two actors ask for the same place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "runtime/head/cluster_tables.h"

namespace runtime {

/// Whether it is started again if its process ends now.
bool may_restart(const ClusterTables& tables, const ActorRecord& record);
/// Whether it may be started on another node because its own is drained.
bool may_move(const ClusterTables& tables, const ActorRecord& record);

/// What decides whether an actor finds a place, and the reason that it gets if not.
using ActorShape = std::tuple<std::string, ResourceMap, Labels, std::optional<NodeId>, bool,
                              std::optional<std::pair<GroupId, std::uint32_t>>>;
ActorShape shape_of(const ActorSpec& spec);

}  // namespace runtime
