// The node of this machine that an address leads to.
#pragma once

#include <string>
#include <vector>

#include "runtime/process/session.h"
#include "runtime/transport/endpoint.h"

namespace runtime {

/// Whether a connection from this machine to `wanted` reaches a node that listens at `bound`. It
/// does if the ports are the same, and one host is a name of the other or `bound` is any address of
/// this machine. Cost: host names are looked up.
bool leads_to(const Endpoint& wanted, const Endpoint& bound);

/// The session of the node at HOST:PORT; null: there is none. The text that a node prints comes
/// before other ways to write it.
const SessionInfo* session_at(const std::vector<SessionInfo>& sessions, const std::string& wanted);

}  // namespace runtime
