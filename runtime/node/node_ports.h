// NodePorts: the addresses of a node: its TCP port, and its Unix socket.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/transport/endpoint.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/handshake.h"
#include "runtime/transport/listener.h"

namespace runtime {

struct NodePortsOptions {
  Endpoint bind;                  // TCP; port 0 picks one
  std::string advertise_host;     // what other machines connect to; empty: the bound one
  std::vector<Endpoint> aliases;  // at which callers reach it too, through forwarded ports
  bool plain = false;             // nothing over TCP is encrypted
  std::filesystem::path socket;
};

/// Lives on the event loop.
class NodePorts {
 public:
  /// Errors: kUnavailable (port in use), kInvalidArgument.
  static Result<std::unique_ptr<NodePorts>> listen(EventLoop& loop, const NodePortsOptions& options,
                                                   const Credentials& credentials,
                                                   const ListenerCallbacks& callbacks);
  NodePorts(const NodePorts&) = delete;
  NodePorts& operator=(const NodePorts&) = delete;

  const std::string& address() const { return address_; }  // HOST:PORT
  void stop();

 private:
  NodePorts() = default;

  std::string address_;
  std::unique_ptr<Listener> tcp_;
  std::unique_ptr<Listener> unix_;
};

}  // namespace runtime
