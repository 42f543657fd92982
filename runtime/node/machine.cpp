#include "runtime/node/machine.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "runtime/core/memory_limit.h"
#include "runtime/node/file_util.h"
#include "runtime/node/gpus.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace {

std::string numeric(const sockaddr* address, socklen_t bytes) {
  char text[NI_MAXHOST];
  if (::getnameinfo(address, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

std::string small_machine_file(const char* path) { return read_file(path, 64 << 10).value_or(""); }

}  // namespace

std::string machine_hostname() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

int machine_cpus() {
  cpu_set_t set;
  int cpus = ::sched_getaffinity(0, sizeof set, &set) == 0
                 ? CPU_COUNT(&set)
                 : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  // cgroup v2: "max 100000" or "150000 100000" (microseconds of CPU time per period).
  long long quota = 0, period = 0;
  if (std::sscanf(small_machine_file("/sys/fs/cgroup/cpu.max").c_str(), "%lld %lld", &quota,
                  &period) == 2 &&
      quota > 0 && period > 0) {
    cpus = std::min(cpus, static_cast<int>(std::max(1ll, quota / period)));
  }
  return std::max(1, cpus);
}

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
