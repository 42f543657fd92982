// DelayingLink: a cable between two namespaces that holds packets up, lets them overtake one
// another and loses some.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <queue>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "network.h"

namespace runtime::test {

class DelayingLink {
 public:
  /// Makes a TAP device of each name in each machine. Errors: kUnavailable.
  static Result<std::unique_ptr<DelayingLink>> create(const Machine& a, const std::string& device_a,
                                                      const Machine& b, const std::string& device_b,
                                                      unsigned seed);
  DelayingLink(const DelayingLink&) = delete;
  DelayingLink& operator=(const DelayingLink&) = delete;
  ~DelayingLink();

  void set_quality(const LinkQuality& quality);
  std::uint64_t reordered() const { return reordered_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Packet {
    Clock::time_point due;
    std::uint64_t number = 0;
    int to = 0;  // which end
    std::vector<char> bytes;
    bool operator>(const Packet& other) const {
      return due != other.due ? due > other.due : number > other.number;
    }
  };

  DelayingLink(FileDescriptor a, FileDescriptor b, unsigned seed);
  void carry();
  void take(int from);
  void deliver();

  FileDescriptor ends_[2];
  std::mutex mutex_;
  LinkQuality quality_;
  std::mt19937 random_;
  std::priority_queue<Packet, std::vector<Packet>, std::greater<>> waiting_;
  std::uint64_t next_ = 0;
  std::uint64_t delivered_[2] = {0, 0};
  std::atomic<std::uint64_t> reordered_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace runtime::test
