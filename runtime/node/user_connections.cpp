#include "runtime/node/user_connections.h"

#include <optional>
#include <utility>

#include "runtime/process/job_user.h"
#include "runtime/transport/endpoint.h"

namespace runtime {

namespace {

/// The caller's user, where the kernel knows; else the machine stands for its users.
std::string user_of(const PeerInfo& peer, const std::string& node_address) {
  if (const std::optional<uid_t> uid = peer_user(peer, node_address)) return user_name(*uid);
  auto endpoint = Endpoint::parse(peer.address);
  return "a user at " + (endpoint.ok() ? endpoint->host : peer.address);
}

}  // namespace

Status UserConnections::check(const std::string& user) const {
  const auto found = counts_.find(user);
  const std::size_t count = found == counts_.end() ? 0 : found->second;
  if (count < limit_) return {};
  return resource_exhausted(user + " has " + std::to_string(count) +
                            " connections to this node, as many as a user may have (starling start "
                            "--user-connections)");
}

Status UserConnections::check(const PeerInfo& peer, const std::string& node_address) const {
  return peer.is_submitter ? check(user_of(peer, node_address)) : Status();
}

Status UserConnections::add(const Channel& channel, const std::string& node_address) {
  if (!channel.peer().is_submitter) return {};
  std::string user = user_of(channel.peer(), node_address);
  if (Status status = check(user); !status.ok()) return status;
  ++counts_[user];
  users_[&channel] = std::move(user);
  return {};
}

void UserConnections::remove(const Channel& channel) {
  auto entry = users_.extract(&channel);
  if (entry.empty()) return;
  const auto count = counts_.find(entry.mapped());
  if (--count->second == 0) counts_.erase(count);
}

}  // namespace runtime
