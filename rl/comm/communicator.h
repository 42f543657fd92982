// What data-parallel workers say to each other. One interface; Gloo on CPUs is one implementation.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// Collectives among the ranks of one group. Every rank must make the same calls in the same order
/// with the same sizes. One thread at a time. A peer that is gone or late gives kUnavailable or
/// kDeadlineExceeded on every rank; the group is then broken and must be made anew.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Every rank ends with the element-by-element sum, and all of them with the same bits.
  virtual runtime::Status all_reduce_sum(std::span<float> values) = 0;
  virtual runtime::Status all_reduce_sum(std::span<double> values) = 0;

  /// Every rank ends with `root`'s values.
  virtual runtime::Status broadcast(std::span<float> values, int root) = 0;

  /// `value` of every rank, in rank order.
  virtual runtime::Result<std::vector<std::uint64_t>> all_gather(std::uint64_t value) = 0;

  /// Returns when all ranks have called it.
  virtual runtime::Status barrier() = 0;
};

/// The group of one: every collective is the identity.
std::unique_ptr<Communicator> make_single_communicator();

/// Where ranks find each other: a small key-value store that all of them reach. Thread-safe.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual runtime::Status put(const std::string& key, std::span<const std::uint8_t> value) = 0;
  /// Waits until somebody has put the key. kDeadlineExceeded otherwise.
  virtual runtime::Result<std::vector<std::uint8_t>> get(const std::string& key,
                                                         std::chrono::milliseconds wait) = 0;
  /// Adds to a counter that begins at 0; returns the sum.
  virtual runtime::Result<std::int64_t> add(const std::string& key, std::int64_t amount) = 0;
};

/// A rendezvous for ranks that are threads of one process.
std::unique_ptr<Rendezvous> make_local_rendezvous();

}  // namespace rl
