#include "runtime/transport/dialled_address.h"

#include <sodium/crypto_generichash.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "runtime/core/asio.h"

namespace runtime {

namespace {

AddressDigest digest_of_text(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  AddressDigest digest;
  crypto_generichash(digest.bytes.data(), digest.bytes.size(),
                     reinterpret_cast<const unsigned char*>(text.data()), text.size(), nullptr, 0);
  return digest;
}

AddressDigest digest_of_socket_name(const sockaddr_storage& name, socklen_t size) {
  if (name.ss_family != AF_INET && name.ss_family != AF_INET6) return {};
  asio::ip::tcp::endpoint endpoint;
  endpoint.resize(size);
  std::memcpy(endpoint.data(), &name, size);
  asio::ip::address address = endpoint.address();
  if (address.is_v6()) {
    auto six = address.to_v6();
    six.scope_id(0);  // each machine has its own number for a link
    address = six.is_v4_mapped()
                  ? asio::ip::address(asio::ip::make_address_v4(asio::ip::v4_mapped, six))
                  : asio::ip::address(six);
  }
  return digest_of_text(Endpoint::tcp(address.to_string(), endpoint.port()).to_string());
}

}  // namespace

AddressDigest digest_of(const Endpoint& endpoint) {
  if (endpoint.is_unix()) return {};
  return digest_of_text(endpoint.for_worker({}).to_string());
}

AddressDigest digest_of_local_address(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) return {};
  return digest_of_socket_name(name, size);
}

AddressDigest digest_of_peer_address(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) return {};
  return digest_of_socket_name(name, size);
}

OwnAddresses::OwnAddresses(const Endpoint& bound, const std::vector<Endpoint>& others) {
  digests_.push_back(digest_of(bound));
  for (Endpoint other : others) {
    if (other.port == 0) other.port = bound.port;
    digests_.push_back(digest_of(other));
  }
}

bool OwnAddresses::includes(const AddressDigest& dialled, const AddressDigest& reached,
                            int socket) const {
  const AddressDigest here = digest_of_local_address(socket);
  if (!here.is_none() && reached == here) return true;
  return std::any_of(digests_.begin(), digests_.end(), [&](const AddressDigest& own) {
    return own == dialled || (!reached.is_none() && own == reached);
  });
}

}  // namespace runtime
