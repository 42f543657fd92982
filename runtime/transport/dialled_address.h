// The address by which a caller reached a callee, as digests that both sides can compute. A node
// refuses callers that dialled another address: their connection was relayed. Private to
// runtime/transport.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/transport/endpoint.h"

namespace runtime {

/// Of "HOST:PORT". It has a fixed size and shows an eavesdropper no name; it is not secret.
using AddressDigest = Id<struct AddressTag>;

/// Ignores case and the target worker. None for a Unix socket.
AddressDigest digest_of(const Endpoint& endpoint);
/// Of a connected TCP socket's local or peer address. IPv4-mapped IPv6 counts as IPv4. None for
/// other sockets.
AddressDigest digest_of_local_address(int socket);
AddressDigest digest_of_peer_address(int socket);

/// The addresses by which a listener may be reached.
class OwnAddresses {
 public:
  /// Port 0 of another address is the bound one.
  OwnAddresses(const Endpoint& bound, const std::vector<Endpoint>& others);

  /// Whether a caller that dialled one address, which led it to the other, meant this listener.
  /// `socket`: the accepted connection.
  bool includes(const AddressDigest& dialled, const AddressDigest& reached, int socket) const;

 private:
  std::vector<AddressDigest> digests_;
};

}  // namespace runtime
