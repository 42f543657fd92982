// EndedOwners: whose extents have ended with their process, for saying why an object is gone.
// Private to this folder.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/result.h"
#include "runtime/transport/handshake.h"

namespace runtime::object_detail {

class EndedOwners {
 public:
  /// `how_ended`: as ObjectStoreOptions::how_ended.
  EndedOwners(NodeId node, std::function<std::string(pid_t)> how_ended)
      : node_(node), how_ended_(std::move(how_ended)) {}

  void note(const std::vector<std::uint64_t>& extents, const PeerInfo& owner);
  /// kObjectLost: why there is no such extent.
  Status lost(std::uint64_t extent) const;

 private:
  struct Owner {
    std::string who;  // "driver", "worker 7f3a0011"
    pid_t pid = 0;
  };

  const NodeId node_;
  const std::function<std::string(pid_t)> how_ended_;
  std::unordered_map<std::uint64_t, Owner> owners_;  // by extent
  std::deque<std::uint64_t> order_;                  // oldest first
};

}  // namespace runtime::object_detail
