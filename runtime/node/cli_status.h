// `starling status`, and what of it other commands show too.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/control/membership.h"

namespace runtime {

/// Each returns the exit code.
int status_command(const std::string& address, bool json);
/// `kind`: "jobs" or "placement-groups".
int list_command(const std::string& address, const std::string& kind, bool json);

// The keys are what scripts rely on (docs/guide/observe.md): add, never rename.
nlohmann::ordered_json to_json(const NodeInfo& node);
nlohmann::ordered_json to_json(const ActorState& actor);

/// A line for people.
void print_row(const NodeInfo& node);
void print_row(const ActorState& actor);

}  // namespace runtime
