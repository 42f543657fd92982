// The TCP addresses of a connected socket's two ends. Linux writes an IPv4 peer of an IPv6 socket
// as an IPv4-mapped address; here it is the IPv4 address.
#pragma once

#include <optional>

#include "runtime/core/asio.h"

namespace runtime {

/// Nothing: not a TCP socket, or not connected (any more).
std::optional<asio::ip::tcp::endpoint> local_tcp_address(int socket);
std::optional<asio::ip::tcp::endpoint> peer_tcp_address(int socket);

}  // namespace runtime
