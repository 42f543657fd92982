#include "runtime/transport/dialled_address.h"

#include <sodium/crypto_generichash.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "runtime/transport/socket_address.h"

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

AddressDigest digest_of_address(const std::optional<asio::ip::tcp::endpoint>& endpoint) {
  if (!endpoint) return {};
  asio::ip::address address = endpoint->address();
  if (address.is_v6()) {
    auto six = address.to_v6();
    six.scope_id(0);  // each machine has its own number for a link
    address = six;
  }
  return digest_of_text(Endpoint::tcp(address.to_string(), endpoint->port()).to_string());
}

}  // namespace

AddressDigest digest_of(const Endpoint& endpoint) {
  if (endpoint.is_unix()) return {};
  return digest_of_text(endpoint.for_worker({}).to_string());
}

AddressDigest digest_of_local_address(int socket) {
  return digest_of_address(local_tcp_address(socket));
}

AddressDigest digest_of_peer_address(int socket) {
  return digest_of_address(peer_tcp_address(socket));
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
