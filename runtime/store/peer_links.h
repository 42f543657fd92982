// PeerLinks: a store's connections to the stores of other nodes, made when they are needed. Private
// to runtime/store.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/store/object_wire.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/handshake.h"

namespace runtime::object_detail {

/// Lives on the event loop.
class PeerLinks : public std::enable_shared_from_this<PeerLinks> {
 public:
  using Use = UniqueFunction<void(Result<std::shared_ptr<Channel>>)>;

  PeerLinks(EventLoop& loop, Credentials credentials)
      : loop_(loop), credentials_(std::move(credentials)) {}
  PeerLinks(const PeerLinks&) = delete;
  PeerLinks& operator=(const PeerLinks&) = delete;

  /// The connection number `stream` to the store at that endpoint; maybe at once. Errors:
  /// kUnavailable, kInvalidArgument.
  void with(const std::string& endpoint, int stream, Use use);
  /// Sends it over the first connection to the endpoint; `done` with the answer, or (without an
  /// answer) with why there is none.
  void ask(const std::string& endpoint, const object_wire::Request& request, Deadline deadline,
           UniqueFunction<void(Result<object_wire::Reply>)> done);
  void stop();

  // Set by the store.
  std::function<void(const std::vector<ObjectId>&)> on_ended;  // the other store had these objects
  std::function<void(const std::string& endpoint)>
      on_first_lost;  // the first connection to an endpoint ended

 private:
  struct Peer {
    std::shared_ptr<Channel> channel;
    std::vector<Use> waiting;
  };

  void watch(const std::string& endpoint, int stream, const std::shared_ptr<Channel>& channel);

  EventLoop& loop_;
  const Credentials credentials_;
  std::map<std::pair<std::string, int>, std::shared_ptr<Peer>> peers_;
  bool stopped_ = false;
};

}  // namespace runtime::object_detail
