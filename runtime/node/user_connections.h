// UserConnections: a node's connections from callers with a submitter's token, by user.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "runtime/core/result.h"
#include "runtime/transport/channel.h"

namespace runtime {

/// On the event loop.
class UserConnections {
 public:
  /// Each user has `limit` at most.
  explicit UserConnections(std::size_t limit) : limit_(limit) {}
  UserConnections(const UserConnections&) = delete;
  UserConnections& operator=(const UserConnections&) = delete;

  /// Whether the caller may have one more; all but submitters may. `node_address`: where the node
  /// listens, by which the kernel tells who is at the other end. Errors: kResourceExhausted.
  Status check(const PeerInfo& peer, const std::string& node_address) const;
  /// Counts it until it is removed. Errors: as check().
  Status add(const Channel& channel, const std::string& node_address);
  void remove(const Channel& channel);

 private:
  Status check(const std::string& user) const;

  const std::size_t limit_;
  std::map<const Channel*, std::string> users_;
  std::map<std::string, std::size_t> counts_;
};

}  // namespace runtime
