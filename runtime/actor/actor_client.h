// ActorClient: the caller's side of one actor, shared by all handles to it in a process. Keeps the order of calls: one leaves only
// after those before it, also when those wait for their arguments or for the connection.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "runtime/actor/encoder.h"
#include "runtime/actor/fwd.h"
#include "runtime/actor/method.h"
#include "runtime/actor/object_state.h"
#include "runtime/core/result.h"
#include "runtime/node/membership.h"

namespace runtime {

class ActorClient : public std::enable_shared_from_this<ActorClient> {
 public:
  ActorClient(std::shared_ptr<Process> process, ActorAddress address);
  ActorClient(const ActorClient&) = delete;
  ActorClient& operator=(const ActorClient&) = delete;
  ~ActorClient();

  const ActorAddress& address() const { return address_; }
  const std::shared_ptr<Process>& process() const { return process_; }
  /// "Counter 7f3a0011", for messages.
  std::string describe() const;

  /// Sends a call, or puts it in line. Never blocks; what goes wrong ends up in the returned object. Any thread.
  ObjectStatePtr call(std::type_index type, const MethodKey& method, Encoder& arguments, std::chrono::milliseconds timeout);

  /// Fails everything outstanding and everything later. Called when the process shuts down.
  void close(Status reason);

 private:
  friend struct OutgoingCall;
  enum class Link { kNone, kConnecting, kOpen, kClosed };

  Result<const MethodEntry*> find_method(std::type_index type, const MethodKey& method);
  void pump(std::unique_lock<std::mutex>& lock);
  bool front_is_ready() const;
  void send(OutgoingCall& call);
  void connect();
  void on_connected(Result<std::shared_ptr<Channel>> channel);
  void on_closed(Status reason);
  void on_notice(Message message);
  void on_reply(std::uint64_t sequence, const std::shared_ptr<OutgoingCall>& call, Result<Message> reply);
  void fail_with_cause(std::vector<std::shared_ptr<OutgoingCall>> calls, Status reason);

  const std::shared_ptr<Process> process_;
  const ActorAddress address_;

  std::mutex mutex_;  // guards what follows; held while a call is handed to the channel, so that calls keep their order
  Link link_ = Link::kNone;
  std::shared_ptr<Channel> channel_;
  std::deque<std::shared_ptr<OutgoingCall>> line_;  // calls not sent yet, in order
  std::uint64_t sequence_ = 0;
  /// What the actor may still refer to, by the sequence of the call that carried it; until it says that it is done with it.
  std::unordered_map<std::uint64_t, std::vector<ObjectStatePtr>> lent_;
  Status closed_;
};

}  // namespace runtime
