// KeyValueApi: small values under keys, which the processes of a job share.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/api/connection.h"
#include "runtime/api/until.h"

namespace runtime {

/// Runtime::kv(). Key-value pairs of this job, for actors to find each other; the head keeps them.
/// Values up to 1 MiB. A value that borrows the Runtime. Errors: kDeadlineExceeded, and those of a
/// runtime that is not started.
class KeyValueApi {
 public:
  explicit KeyValueApi(const Connection& connection) : connection_(connection) {}

  Status put(const std::string& key, std::string value, Until until = std::chrono::seconds(30));
  /// Waits for the key to appear.
  Result<std::string> get(const std::string& key, Until until = std::chrono::seconds(30));
  /// kNotFound if it is not there now.
  Result<std::string> try_get(const std::string& key, Until until = std::chrono::seconds(30));
  /// Adds to a number (absent: 0); returns the sum.
  Result<std::int64_t> add(const std::string& key, std::int64_t amount,
                           Until until = std::chrono::seconds(30));
  /// Whether it was there.
  Result<bool> remove(const std::string& key, Until until = std::chrono::seconds(30));

 private:
  const Connection& connection_;
};

}  // namespace runtime
