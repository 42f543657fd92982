#include "runtime/process/machine.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "runtime/core/cpu_limit.h"
#include "runtime/core/memory_limit.h"
#include "runtime/process/gpus.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace {

std::string numeric(const sockaddr* address, socklen_t bytes) {
  char text[NI_MAXHOST];
  if (::getnameinfo(address, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

}  // namespace

std::string machine_hostname() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

int machine_cpus() { return std::max(1, static_cast<int>(cpu_limit())); }

std::uint64_t machine_memory_bytes() { return memory_limit_bytes(); }

ResourceMap machine_resources(bool detect_gpus) {
  ResourceMap resources{{"CPU", machine_cpus()},
                        {"memory", static_cast<double>(machine_memory_bytes())}};
  if (int gpus = detect_gpus ? machine_gpus() : 0; gpus > 0) resources["GPU"] = gpus;
  return resources;
}

Result<std::string> local_address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  // Any port does: connecting a datagram socket only chooses a route.
  if (int error = ::getaddrinfo(host.c_str(), "9", &hints, &found); error != 0) {
    return unavailable("host '" + host + "': " + ::gai_strerror(error));
  }
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  int error = EHOSTUNREACH;
  for (const addrinfo* entry = found; entry; entry = entry->ai_next) {
    FileDescriptor socket(::socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket || ::connect(socket.get(), entry->ai_addr, entry->ai_addrlen) != 0) {
      error = errno;
      continue;
    }
    sockaddr_storage local{};
    socklen_t bytes = sizeof local;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &bytes) == 0) {
      return numeric(reinterpret_cast<sockaddr*>(&local), bytes);
    }
  }
  return unavailable("host '" + host +
                     "' cannot be reached: " + errno_status(error, "route").message());
}

bool is_address_of_this_machine(const asio::ip::address& address) {
  boost::system::error_code error;
  asio::io_context context;
  asio::ip::udp::socket socket(context);
  socket.open(address.is_v4() ? asio::ip::udp::v4() : asio::ip::udp::v6(), error);
  if (!error) socket.bind({address, 0}, error);
  return !error;
}

std::string outward_address() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return "127.0.0.1";
  std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(found, &::freeifaddrs);
  for (const ifaddrs* entry = found; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET) continue;
    if ((entry->ifa_flags & IFF_LOOPBACK) || !(entry->ifa_flags & IFF_UP)) continue;
    return numeric(entry->ifa_addr, sizeof(sockaddr_in));
  }
  return "127.0.0.1";
}

}  // namespace runtime
