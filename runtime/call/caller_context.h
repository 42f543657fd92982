// CallerContext: the parts of a process that the callers' side of all actors shares. Its clients,
// links, streams and tasks need them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "runtime/call/fwd.h"
#include "runtime/call/object_state.h"
#include "runtime/call/wait_step.h"
#include "runtime/control/membership.h"
#include "runtime/core/clock.h"
#include "runtime/core/result.h"
#include "runtime/transport/buffer.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

/// How long a value that is needed now (an argument, a result) waits for room in a full store. It
/// waits at most until the deadline of its call.
inline constexpr std::chrono::seconds kStoreWait{30};
inline Deadline room_deadline(Deadline call) { return std::min(call, deadline_after(kStoreWait)); }

/// What callers ask of their node, and of the head by way of it. Any thread; callbacks run on the
/// loop.
class CallerNode {
 public:
  template <class T>
  using Callback = std::function<void(Result<T>)>;

  virtual NodeId node_id() const = 0;
  /// HOST:PORT.
  virtual std::string node_address() const = 0;
  /// To a worker process. Over TCP the connection survives a lost socket. `done` once.
  virtual void connect(const Endpoint& worker,
                       UniqueFunction<void(Result<std::shared_ptr<Channel>>)> done) = 0;
  /// As ActorDirectory::state and ActorDirectory::resolve.
  virtual void state(ActorId actor, std::uint64_t incarnation, Deadline deadline,
                     Callback<ActorState> done) = 0;
  virtual void resolve(ActorId actor, Deadline deadline, Callback<ActorAddress> done) = 0;
  /// Tells the process that builds the actor, if one does, of waits for its constructor.
  virtual void tell_builder(ActorId actor, const std::vector<WaitStep>& waits) = 0;

 protected:
  ~CallerNode() = default;
};

/// The objects of calls: arguments on their way out, and results. Any thread.
class CallObjects {
 public:
  /// One that is not there yet.
  virtual ObjectStatePtr pending() = 0;
  /// The encoded value: small ones as bytes, large ones (from kLargeArrayBytes) in the node's
  /// shared memory. Errors: kResourceExhausted (no room by the deadline), kCancelled (told to stop
  /// while it waited for room), kUnavailable.
  virtual Result<ObjectValue> store(Encoder& encoder, Deadline deadline,
                                    const std::stop_token& stop = {}) = 0;
  /// As in call_wire.h: what the bytes refer to become objects of this process.
  virtual Status decode_reply(const Buffer& meta, Buffer payload,
                              const std::function<std::shared_ptr<const void>()>& make_loan,
                              CallReply* reply, ObjectValue* value) = 0;
  virtual Result<ObjectValue> decode_stream_item(
      const Buffer& meta, Buffer payload,
      const std::function<std::shared_ptr<const void>(std::uint64_t lend_id)>& make_loan) = 0;
  /// Keeps objects that were lent to a process that has died a moment longer. Processes to which it
  /// passed them on are about to report that they borrow them.
  virtual void linger(std::vector<ObjectValue> lent) = 0;

  /// One that has failed.
  ObjectStatePtr failed(Status why) {
    ObjectStatePtr object = pending();
    object->fail(std::move(why));
    return object;
  }

 protected:
  ~CallObjects() = default;
};

/// Each holder has a share of what keeps all of it alive.
struct CallerContext {
  EventLoop& loop;
  const Registry& registry;
  const std::uint64_t session;  // a number in the process's calls, as Process::session
  const std::shared_ptr<ActivityPage> activity;  // null: what the process does is not seen
  const std::atomic<bool>& shut_down;
  BlockedCalls& blocked_calls;
  ObjectTable& object_table;
  ActorClients& clients;
  CallObjects& objects;
  CallerNode& node;
};

}  // namespace runtime
