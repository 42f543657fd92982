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

/// The host of a node's HOST:PORT, an IPv6 address without its brackets, as Gloo and getaddrinfo
/// take it. Errors: kInvalidArgument naming the address.
runtime::Result<std::string> host_of_node(const std::string& address);

/// The host name or address of this process's node, as other nodes reach it. Errors: those of
/// rt.cluster().state and host_of_node.
runtime::Result<std::string> node_host(runtime::Runtime& runtime);

}  // namespace rl
