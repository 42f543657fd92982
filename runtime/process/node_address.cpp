#include "runtime/process/node_address.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "runtime/core/asio.h"
#include "runtime/process/machine.h"

namespace runtime {

namespace {

using Addresses = std::vector<asio::ip::address>;

asio::ip::address without_mapping(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  return address;
}

/// Of a name or a numeric address; none: it is unknown.
Addresses addresses_of(const std::string& host) {
  boost::system::error_code is_name;
  if (const auto address = asio::ip::make_address(host, is_name); !is_name)
    return {without_mapping(address)};
  if (host == "localhost")
    return {asio::ip::address_v4::loopback(), asio::ip::address_v6::loopback()};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  Addresses addresses;
  for (const addrinfo* entry = found; entry; entry = entry->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(entry->ai_addr, entry->ai_addrlen, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) != 0)
      continue;
    const auto address = asio::ip::make_address(text, is_name);
    if (!is_name) addresses.push_back(without_mapping(address));
  }
  return addresses;
}

/// As the kernel connects: to "any address" is to this machine.
bool is_here(const asio::ip::address& address) {
  return address.is_unspecified() || is_address_of_this_machine(address);
}

bool takes(const asio::ip::address& bound, const asio::ip::address& wanted) {
  if (bound == wanted) return true;
  // `::` takes IPv4 too.
  if (bound.is_unspecified()) return is_here(wanted) && (bound.is_v6() || wanted.is_v4());
  return wanted.is_unspecified() && bound.is_loopback() && bound.is_v4() == wanted.is_v4();
}

}  // namespace

bool leads_to(const Endpoint& wanted, const Endpoint& bound) {
  if (wanted.is_unix() || bound.is_unix() || wanted.port != bound.port) return false;
  const Addresses to = addresses_of(wanted.host), from = addresses_of(bound.host);
  return std::any_of(to.begin(), to.end(), [&](const asio::ip::address& one) {
    return std::any_of(from.begin(), from.end(),
                       [&](const auto& other) { return takes(other, one); });
  });
}

const SessionInfo* session_at(const std::vector<SessionInfo>& sessions, const std::string& wanted) {
  for (const SessionInfo& session : sessions) {
    if (session.address == wanted) return &session;
  }
  const auto endpoint = Endpoint::parse(wanted);
  if (!endpoint.ok()) return nullptr;
  for (const SessionInfo& session : sessions) {
    const auto bound = Endpoint::parse(session.bound.empty() ? session.address : session.bound);
    if (bound.ok() && leads_to(*endpoint, *bound)) return &session;
  }
  return nullptr;
}

}  // namespace runtime
