// `starling status`, and what of it other commands show too.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/control/membership.h"

namespace placement {

/// Returns the exit code.
int status_command(const std::string& address, bool json);

// The keys are what scripts rely on (docs/guide/observe.md): add, never rename.
nlohmann::ordered_json to_json(const runtime::NodeInfo& node);
nlohmann::ordered_json to_json(const runtime::ActorState& actor);
nlohmann::ordered_json to_json(const runtime::GroupState& group);

/// A line for people.
void print_row(const runtime::NodeInfo& node);
void print_row(const runtime::ActorState& actor);
void print_row(const runtime::GroupState& group);

/// For what needs more of the cluster to be shown than itself, like a job (cli_jobs.h), there are
/// others.
template <class T>
nlohmann::ordered_json to_json(const T& item, const runtime::ClusterState&) {
  return to_json(item);
}
template <class T>
void print_row(const T& item, const runtime::ClusterState&) {
  print_row(item);
}

}  // namespace placement
