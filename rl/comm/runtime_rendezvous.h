// Ranks find each other through the cluster's key-value pairs: no port to set up, no address to
// pass.
#pragma once

#include <memory>
#include <string>

#include "rl/comm/rendezvous.h"
#include "runtime/runtime.h"

namespace rl {

/// A rendezvous over `runtime`'s key-value pairs, which it borrows.
std::shared_ptr<Rendezvous> make_runtime_rendezvous(runtime::Runtime& runtime);

/// The host name or address of this process's node, as other nodes reach it. Errors: those of
/// rt.cluster().state.
runtime::Result<std::string> node_host(runtime::Runtime& runtime);

}  // namespace rl
