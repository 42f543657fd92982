// UserConnections: a node's connections from callers with a submitter's token, and the requests
// that they wait for, by user.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/core/result.h"
#include "runtime/transport/channel.h"

namespace runtime {

/// Lives on the event loop.
class UserConnections {
 private:
  struct Load {
    std::size_t requests = 0;
    std::size_t bytes = 0;
  };

 public:
  /// Of each user: requests that have no answer yet, or whose answer was not read, and their bytes.
  /// One that is larger may be alone.
  static constexpr std::size_t kRequestsMax = 512;
  static constexpr std::size_t kRequestBytesMax = 128 << 20;
  /// A request; it counts until this goes. May outlive the node.
  class Request {
   public:
    Request(std::shared_ptr<Load> load, std::size_t bytes) : load_(std::move(load)), bytes_(bytes) {
      ++load_->requests;
      load_->bytes += bytes_;
    }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    ~Request() {
      --load_->requests;
      load_->bytes -= bytes_;
    }

   private:
    const std::shared_ptr<Load> load_;
    const std::size_t bytes_;
  };

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

  /// Of a connection that was added. Errors: kResourceExhausted, kUnavailable (it was removed).
  Result<std::shared_ptr<Request>> begin(const Channel& channel, std::size_t bytes) const;
  /// The caller's user of one that was added, where the kernel knew it then.
  std::optional<std::string> user_of(const Channel& channel) const;
  /// Of any connection: as peer_user(), which asks the kernel each time and takes a millisecond;
  /// of one that was added, what that said then.
  std::optional<uid_t> uid_of(const Channel& channel, const std::string& node_address) const;

 private:
  struct Caller {
    std::string key;  // of counts_
    std::optional<uid_t> uid;
    std::optional<std::string> user;
  };
  struct Count {
    std::size_t connections = 0;
    std::shared_ptr<Load> load = std::make_shared<Load>();
  };
  static Caller caller_of(const PeerInfo& peer, const std::string& node_address);
  Status check(const std::string& key) const;

  const std::size_t limit_;
  std::map<const Channel*, Caller> callers_;
  std::map<std::string, Count> counts_;
};

}  // namespace runtime
