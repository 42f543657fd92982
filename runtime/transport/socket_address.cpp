#include "runtime/transport/socket_address.h"

#include <sys/socket.h>

#include <cstring>

namespace runtime {

namespace {

using SocketName = int (*)(int, sockaddr*, socklen_t*);

std::optional<asio::ip::tcp::endpoint> tcp_address(int socket, SocketName name_of) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (name_of(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0 ||
      (name.ss_family != AF_INET && name.ss_family != AF_INET6))
    return std::nullopt;
  asio::ip::tcp::endpoint endpoint;
  endpoint.resize(size);
  std::memcpy(endpoint.data(), &name, size);
  const asio::ip::address address = endpoint.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    endpoint.address(asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()));
  return endpoint;
}

int local_name(int socket, sockaddr* name, socklen_t* size) {
  return ::getsockname(socket, name, size);
}
int peer_name(int socket, sockaddr* name, socklen_t* size) {
  return ::getpeername(socket, name, size);
}

}  // namespace

std::optional<asio::ip::tcp::endpoint> local_tcp_address(int socket) {
  return tcp_address(socket, local_name);
}

std::optional<asio::ip::tcp::endpoint> peer_tcp_address(int socket) {
  return tcp_address(socket, peer_name);
}

}  // namespace runtime
