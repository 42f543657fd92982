// A second network on this machine: a namespace joined to ours by a pair of virtual Ethernet
// devices, or by a tunnel with a delay. Needs root and `ip`.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "bench/support/delayed_tunnel.h"
#include "bench/support/timing.h"

namespace bench {

class NetworkPair {
 public:
  /// None where namespaces cannot be made; says why on stderr.
  static std::unique_ptr<NetworkPair> create(std::chrono::microseconds delay = {}) {
    std::unique_ptr<NetworkPair> pair(new NetworkPair);
    const std::string& far = pair->name_;
    const std::string near_device = far + "a", far_device = far + "b";
    const bool made = ip("netns add " + far) && pair->join(near_device, far_device, delay) &&
                      ip("addr add " + pair->near() + "/30 dev " + near_device) &&
                      ip("link set " + near_device + " up") &&
                      ip("-n " + far + " addr add " + pair->far() + "/30 dev " + far_device) &&
                      ip("-n " + far + " link set " + far_device + " up") &&
                      ip("-n " + far + " link set lo up");
    if (made) return pair;
    std::fprintf(stderr,
                 "no second network here (it takes root and `ip netns`): figures across networks "
                 "are left out\n");
    return nullptr;
  }
  NetworkPair(const NetworkPair&) = delete;
  NetworkPair& operator=(const NetworkPair&) = delete;
  ~NetworkPair() { ip("netns del " + name_); }  // its devices go with it

  /// Addresses on this side and on the other.
  std::string near() const { return prefix_ + std::to_string(base_ + 1); }
  std::string far() const { return prefix_ + std::to_string(base_ + 2); }
  /// Bytes that this side has sent to the other, headers included.
  std::uint64_t sent() const {
    std::uint64_t bytes = 0;
    std::ifstream("/sys/class/net/" + name_ + "a/statistics/tx_bytes") >> bytes;
    return bytes;
  }
  /// What to put before a command to run it on the other side.
  std::string on_far_side() const { return "ip netns exec " + name_ + " "; }
  /// Takes the calling process there.
  void enter() const {
    int fd = ::open(("/run/netns/" + name_).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) ::_exit(1);
    ::close(fd);
  }

 private:
  NetworkPair() = default;
  bool join(const std::string& near_device, const std::string& far_device,
            std::chrono::microseconds delay) {
    if (delay.count() == 0)
      return ip("link add " + near_device + " type veth peer name " + far_device + " netns " +
                name_);
    tunnel_ = DelayedTunnel::create({near_device, far_device}, delay);
    const std::string packets = " mtu " + std::to_string(DelayedTunnel::kPacketBytes);
    return tunnel_ && ip("link set " + near_device + packets) &&
           ip("link set " + far_device + packets + " netns " + name_);
  }
  static bool ip(const std::string& arguments) {
    return std::system(("ip " + arguments + " 2>/dev/null").c_str()) == 0;
  }

  const std::string name_ =
      "slb" + std::to_string(::getpid());  // devices' names have at most 15 characters
  // Four addresses for each process, so that several can measure at once.
  const std::string prefix_ = "10.213." + std::to_string(::getpid() / 64 % 256) + ".";
  const int base_ = ::getpid() % 64 * 4;
  std::unique_ptr<DelayedTunnel> tunnel_;
};

}  // namespace bench
