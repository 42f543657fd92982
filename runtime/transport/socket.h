// Sockets below the handshake: binding, connecting, naming. Private to runtime/transport.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "runtime/core/asio.h"
#include "runtime/core/result.h"
#include "runtime/core/timer.h"
#include "runtime/transport/connection_socket.h"
#include "runtime/transport/endpoint.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime::transport_detail {

using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;

/// A socket with a deadline for everything that happens on it until disarm(): when it passes,
/// pending operations end as cancelled. Lives in a shared_ptr, which the timer's handler holds too.
/// On the loop only.
struct TimedSocket : std::enable_shared_from_this<TimedSocket> {
  TimedSocket(asio::io_context& context, ConnectionSocket connection)
      : socket(std::move(connection)), timer(context) {}

  void arm(Deadline deadline);
  void disarm();
  /// What a failure on this socket was: the deadline passing, or `status` itself.
  Status explain(Status status, const std::string& what) const;

  ConnectionSocket socket;
  Timer timer;
  bool expired = false;
  std::function<void()>
      on_expired;  // of a connection that is not the socket's doing (a simulated one)
};

/// Connects; resolves names. Errors as connect() lists them, each naming the endpoint.
asio::awaitable<Status> connect_socket(TimedSocket& timed, Endpoint endpoint);

/// Binds and listens. `endpoint` becomes the real one (port).
Result<Acceptor> bind_listener(asio::io_context& context, Endpoint& endpoint);

/// Wraps a connected descriptor. Errors: kInvalidArgument when it is no stream socket.
Result<ConnectionSocket> adopt_socket(asio::io_context& context, FileDescriptor fd);

/// Whether some of what was sent is on its way, and no acknowledgement of anything has come for so
/// long. Not of Unix sockets.
bool is_unacknowledged(ConnectionSocket& socket, std::chrono::milliseconds since);

/// Small frames leave at once, dead peers are noticed: TCP only, failures do not matter.
void tune(ConnectionSocket& socket);

/// "10.0.0.2:41822", or "unix:" and the listener's path.
std::string peer_address(ConnectionSocket& socket, const Endpoint& listener);
/// What one host can't have many of: bytes of its IPv4 address, or of its IPv6 network. Empty for
/// Unix sockets.
std::string peer_source(ConnectionSocket& socket);

}  // namespace runtime::transport_detail
