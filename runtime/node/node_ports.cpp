#include "runtime/node/node_ports.h"

#include <unistd.h>

#include <utility>

namespace runtime {

Result<std::unique_ptr<NodePorts>> NodePorts::listen(EventLoop& loop,
                                                     const NodePortsOptions& options,
                                                     const Credentials& credentials,
                                                     const ListenerCallbacks& callbacks) {
  std::unique_ptr<NodePorts> ports(new NodePorts);
  ListenerOptions listening;
  listening.plain = options.plain;
  listening.also_reached_at = options.aliases;
  // Only root can become the user who submits.
  listening.admits_submitters = ::geteuid() == 0;
  if (!options.advertise_host.empty())
    listening.also_reached_at.push_back(Endpoint::tcp(options.advertise_host, 0));
  auto tcp = Listener::listen(loop, options.bind, credentials, callbacks, listening);
  if (!tcp.ok()) return tcp.status();
  ports->tcp_ = std::move(*tcp);
  auto path = Endpoint::unix_socket(options.socket.string());
  if (!path.ok()) return path.status();
  auto unix_listener = Listener::listen(loop, *path, credentials, callbacks, listening);
  if (!unix_listener.ok()) return unix_listener.status();
  ports->unix_ = std::move(*unix_listener);
  Endpoint public_endpoint = ports->tcp_->endpoint();
  if (!options.advertise_host.empty()) public_endpoint.host = options.advertise_host;
  ports->address_ = public_endpoint.to_string();
  return ports;
}

void NodePorts::stop() {
  tcp_->stop();
  unix_->stop();
}

}  // namespace runtime
