#include "runtime/node/user_connections.h"

#include <optional>
#include <utility>

#include "runtime/process/job_user.h"
#include "runtime/transport/endpoint.h"

namespace runtime {

/// The machine stands for its users where the kernel does not know.
UserConnections::Caller UserConnections::caller_of(const PeerInfo& peer,
                                                   const std::string& node_address) {
  if (const std::optional<uid_t> uid = peer_user(peer, node_address)) {
    const std::string name = user_name(*uid);
    return {name, uid, name};
  }
  auto endpoint = Endpoint::parse(peer.address);
  return {"a user at " + (endpoint.ok() ? endpoint->host : peer.address), std::nullopt,
          std::nullopt};
}

Status UserConnections::check(const std::string& key) const {
  const auto found = counts_.find(key);
  const std::size_t count = found == counts_.end() ? 0 : found->second.connections;
  if (count < limit_) return {};
  return resource_exhausted(key + " has " + std::to_string(count) +
                            " connections to this node, as many as a user may have (starling start "
                            "--user-connections)");
}

Status UserConnections::check(const PeerInfo& peer, const std::string& node_address) const {
  return peer.is_submitter ? check(caller_of(peer, node_address).key) : Status();
}

Status UserConnections::add(const Channel& channel, const std::string& node_address) {
  if (!channel.peer().is_submitter) return {};
  Caller caller = caller_of(channel.peer(), node_address);
  if (Status status = check(caller.key); !status.ok()) return status;
  ++counts_[caller.key].connections;
  callers_[&channel] = std::move(caller);
  return {};
}

void UserConnections::remove(const Channel& channel) {
  auto entry = callers_.extract(&channel);
  if (entry.empty()) return;
  --counts_.at(entry.mapped().key).connections;
  // What its requests still hold counts for the user's next connection.
  std::erase_if(counts_, [](const auto& one) {
    return one.second.connections == 0 && one.second.load->requests == 0;
  });
}

Result<std::shared_ptr<UserConnections::Request>> UserConnections::begin(const Channel& channel,
                                                                         std::size_t bytes) const {
  const auto caller = callers_.find(&channel);
  if (caller == callers_.end()) return unavailable("the connection has ended");
  const std::shared_ptr<Load>& load = counts_.at(caller->second.key).load;
  if (load->requests > 0 &&
      (load->requests >= kRequestsMax || load->bytes + bytes > kRequestBytesMax)) {
    return resource_exhausted(caller->second.key + " waits for the answers to " +
                              std::to_string(load->requests) + " requests of " +
                              std::to_string(load->bytes) +
                              " bytes at this node, as many as a user may");
  }
  return std::make_shared<Request>(load, bytes);
}

std::optional<std::string> UserConnections::user_of(const Channel& channel) const {
  const auto caller = callers_.find(&channel);
  return caller == callers_.end() ? std::nullopt : caller->second.user;
}

std::optional<uid_t> UserConnections::uid_of(const Channel& channel,
                                             const std::string& node_address) const {
  const auto caller = callers_.find(&channel);
  return caller == callers_.end() ? peer_user(channel.peer(), node_address) : caller->second.uid;
}

}  // namespace runtime
