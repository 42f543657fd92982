// KeyValueClient: a job's key-value pairs.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/control/node_client.h"

namespace runtime {

/// Over a connection to a node, which outlives it. Pairs are gone when the job ends. Values are
/// bytes, at most 1 MiB.
class KeyValueClient {
 public:
  template <class T>
  using Callback = NodeClient::Callback<T>;
  using Done = NodeClient::Done;

  explicit KeyValueClient(NodeClient& node) : node_(node) {}

  void put(std::string key, std::string value, Deadline deadline, Done done);
  /// With `wait`: answers once the key exists. Without: kNotFound at once.
  void get(std::string key, bool wait, Deadline deadline, Callback<std::string> done);
  /// Adds to a decimal number (absent: 0) and answers with the sum. kInvalidArgument: the value is
  /// no number.
  void add(std::string key, std::int64_t amount, Deadline deadline, Callback<std::int64_t> done);
  void remove(std::string key, Deadline deadline, Callback<bool> done);  // whether it was there

 private:
  NodeClient& node_;
};

}  // namespace runtime
