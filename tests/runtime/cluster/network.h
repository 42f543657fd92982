// Network: machines that are network namespaces of this one, joined by a bridge, whose links lose,
// hold up and swallow packets on request.
//
// The namespaces have no names: they and all that is in them end with the processes that are
// inside, whatever ends those.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime::test {

class DelayingLink;

/// What a machine's link does to the packets that pass, each on its own: so they overtake one
/// another when `jitter` is above zero.
struct LinkQuality {
  std::chrono::microseconds delay{0};
  std::chrono::microseconds jitter{0};  // up to this much more, at random
  double loss = 0;                      // share
};

/// A namespace with its own IPv4 and IPv6 addresses; without a namespace: a loopback address
/// here.
class Machine {
 public:
  Machine(int index, FileDescriptor name_space)
      : index_(index), name_space_(std::move(name_space)) {}
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  int index() const { return index_; }
  bool is_here() const { return !name_space_; }
  std::string ipv4() const {
    return (is_here() ? "127.0.0." : "10.77.0.") + std::to_string(index_ + 1);
  }
  std::string ipv6() const { return "fd77::" + std::to_string(index_ + 1); }
  int name_space() const { return name_space_.get(); }

  /// Runs `work` on a thread that is in the namespace, and waits for it. Sockets made there stay
  /// there.
  void inside(const std::function<void()>& work) const;
  /// A line of the kernel's tables of sockets.
  struct Socket {
    std::string table;  // "tcp6"
    std::string local;  // address and port, in hexadecimal digits
    std::string state;  // "0A" listens, "06" is a connection both of whose ends have closed
    std::string line;
  };
  std::vector<Socket> sockets() const;
  /// TCP ports that something in the namespace listens at, over either family, sorted.
  std::vector<int> listening_ports() const;

 private:
  const int index_;
  const FileDescriptor name_space_;
};

class Network {
 public:
  /// Machines 0 to `count` - 1. `delaying`: those whose link is a pair of TAP devices and a thread
  /// between them, so that set_quality() works. Errors: kUnavailable with what is missing here
  /// (root, `ip`, `nft`).
  static Result<std::unique_ptr<Network>> create(int count, const std::vector<int>& delaying = {});
  /// Machines that are addresses of this one's loopback device, for what needs neither faults nor
  /// root.
  static std::unique_ptr<Network> on_loopback(int count);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network();

  const Machine& machine(int index) const { return *machines_.at(static_cast<std::size_t>(index)); }
  int size() const { return static_cast<int>(machines_.size()); }

  /// Packets from one machine to another vanish; the other way they pass.
  void cut(int from, int to);
  /// No packet passes between the machine and the others.
  void isolate(int machine);
  /// That share of the packets that come to the machine vanishes.
  void lose(int machine, double share);
  void set_quality(int machine, const LinkQuality& quality);
  /// How many packets of a delaying link were overtaken.
  std::uint64_t reordered(int machine) const;
  /// Everything passes again.
  void heal();

 private:
  Network() = default;
  Status build(int count, const std::vector<int>& delaying);
  void apply(int machine);

  struct Faults {
    std::vector<int> deaf_to;
    double loss = 0;
  };
  std::unique_ptr<Machine> switch_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<std::unique_ptr<DelayingLink>> links_;
  std::vector<DelayingLink*> link_of_;  // null: a pair of veth devices
  std::vector<Faults> faults_;
};

/// Runs a command in a namespace with `input` as its stdin; what it wrote, when it failed.
Status run_in(int name_space, const std::vector<std::string>& argv, const std::string& input = {});

}  // namespace runtime::test
