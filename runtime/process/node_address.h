// The node of this machine that an address leads to.
#pragma once

#include <string>
#include <vector>

#include "runtime/process/session.h"
#include "runtime/transport/endpoint.h"

namespace runtime {

/// Whether a node that listens at `bound` is what a connection from this machine to `wanted`
/// reaches: the same port, and hosts of which one is a name of the other, or any address of this
/// machine where all are listened at. Cost: host names are looked up.
bool leads_to(const Endpoint& wanted, const Endpoint& bound);

/// The session of the node at HOST:PORT; null: there is none. The text that a node prints comes
/// before other ways to write it.
const SessionInfo* session_at(const std::vector<SessionInfo>& sessions, const std::string& wanted);

}  // namespace runtime
