// `starling status`, and what of it other commands show too.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/control/membership.h"

namespace runtime {

/// Returns the exit code.
int status_command(const std::string& address, bool json);

// The keys are what scripts rely on (docs/guide/observe.md): add, never rename.
nlohmann::ordered_json to_json(const NodeInfo& node);
nlohmann::ordered_json to_json(const ActorState& actor);
nlohmann::ordered_json to_json(const GroupState& group);

/// A line for people.
void print_row(const NodeInfo& node);
void print_row(const ActorState& actor);
void print_row(const GroupState& group);

/// For what needs more of the cluster to be shown than itself, like a job (cli_jobs.h), there are
/// others.
template <class T>
nlohmann::ordered_json to_json(const T& item, const ClusterState&) {
  return to_json(item);
}
template <class T>
void print_row(const T& item, const ClusterState&) {
  print_row(item);
}

}  // namespace runtime
