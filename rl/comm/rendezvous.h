// Rendezvous: the place where the ranks of a group find each other.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// Where ranks find each other: a small key-value store that all of them reach. Thread-safe.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual runtime::Status put(const std::string& key, std::span<const std::uint8_t> value) = 0;
  /// Waits until the key is there. kDeadlineExceeded otherwise.
  virtual runtime::Result<std::vector<std::uint8_t>> get(const std::string& key,
                                                         std::chrono::milliseconds wait) = 0;
  /// Adds to a counter that begins at 0; returns the sum.
  virtual runtime::Result<std::int64_t> add(const std::string& key, std::int64_t amount) = 0;
};

/// A rendezvous for ranks that are threads of one process.
std::unique_ptr<Rendezvous> make_local_rendezvous();

}  // namespace rl
