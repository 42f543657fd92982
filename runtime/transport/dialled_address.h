// By which address a caller reached a callee, as both can tell it. A node answers only callers that
// meant it: one that reached it by way of another machine, which they took for it, is refused.
// Private to runtime/transport.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/transport/endpoint.h"

namespace runtime {

/// Of "HOST:PORT". A digest is of a fixed size and tells an eavesdropper no name; it is no secret.
using AddressDigest = Id<struct AddressTag>;

/// Upper and lower case are alike; the worker is left out. None for a Unix socket.
AddressDigest digest_of(const Endpoint& endpoint);
/// Of the TCP address that a connected socket has at this end, or at the other one. An IPv4 address
/// inside of IPv6 is the IPv4 address. None for other sockets.
AddressDigest digest_of_local_address(int socket);
AddressDigest digest_of_peer_address(int socket);

/// The addresses by which a listener may be reached.
class OwnAddresses {
 public:
  /// Port 0 of another address is the bound one.
  OwnAddresses(const Endpoint& bound, const std::vector<Endpoint>& others);

  /// Whether a caller that dialled the one address and reached the other one meant this listener,
  /// on whose connection `socket` they arrived.
  bool includes(const AddressDigest& dialled, const AddressDigest& reached, int socket) const;

 private:
  std::vector<AddressDigest> digests_;
};

}  // namespace runtime
