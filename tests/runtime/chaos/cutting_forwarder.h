// CuttingForwarder: passes TCP connections on and cuts each after a number of bytes, wherever in a
// frame that falls.
#pragma once

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>

#include "runtime/transport/file_descriptor.h"

namespace runtime::test {

/// Listens at `host` (a loopback address, 127.x.y.z) and forwards to another one at the same port.
/// Each connection is cut once a random number of bytes up to `bytes_max` has passed, in both
/// directions together; from heal() on none is.
class CuttingForwarder {
 public:
  CuttingForwarder(const std::string& host, const std::string& target_host, std::uint16_t port,
                   std::uint64_t bytes_max, unsigned seed);
  CuttingForwarder(const CuttingForwarder&) = delete;
  CuttingForwarder& operator=(const CuttingForwarder&) = delete;
  ~CuttingForwarder();

  bool listens() const { return static_cast<bool>(listener_); }
  int cuts() const { return cuts_; }
  void heal() { healed_ = true; }

 private:
  void serve();
  void forward(FileDescriptor client, std::uint64_t bytes_left);

  const std::string target_host_;
  const std::uint16_t port_;
  const std::uint64_t bytes_max_;
  std::mt19937 random_;
  FileDescriptor listener_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> healed_{false};
  std::atomic<int> cuts_{0};
  std::thread thread_;
};

}  // namespace runtime::test
