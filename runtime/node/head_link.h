// HeadLink: a node's way to the head, over connections that break, heads that die and are started
// again, and the node's own fencing.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "runtime/control/control.h"
#include "runtime/core/lifetime.h"
#include "runtime/core/result.h"
#include "runtime/core/timer.h"
#include "runtime/node/head_absence.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/endpoint.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/handshake.h"

namespace runtime {

/// Lives on the event loop. Requests wait while there is no head, and those that were under way
/// when it died are made again. The head knows them by what they name, or by the request's id
/// (request_ids.h).
class HeadLink {
 public:
  struct Callbacks {
    std::function<control::RegisterNode()>
        registration;  // what the node is, and what runs there now
    std::function<void(ControlRequest request, ControlAnswerer answer)> request;  // of the head's
    std::function<void(const ControlEvent& event)> event;
    /// The node is no part of the cluster any more. kCancelled: the head has declared it dead; what
    /// it runs has been replaced, and it may join again. kUnavailable: the head was away for too
    /// long. Once.
    std::function<void(Status why)> lost;
    /// What keeps the head's process from being started, if this node is to start it; success:
    /// nothing that it knows. May be empty.
    std::function<Status()> head_trouble = {};
    /// The head has taken the node, at first or again. May be empty.
    std::function<void()> registered = {};
  };

  HeadLink(EventLoop& loop, Endpoint head, Credentials credentials, Callbacks callbacks,
           HeadLinkOptions options = {});
  HeadLink(const HeadLink&) = delete;
  HeadLink& operator=(const HeadLink&) = delete;
  ~HeadLink();

  /// Connects and joins; `done` hears once how that ended. Errors: as connect(), and as the head
  /// answers; kDeadlineExceeded.
  void join(std::chrono::milliseconds timeout, UniqueFunction<void(Status)> done);
  bool is_up() const { return state_ == State::kUp; }
  /// Connections after the first.
  std::uint64_t reconnects() const { return life_ > 0 ? life_ - 1 : 0; }

  enum class Urgency { kWaits, kNow };
  /// Errors besides the head's: kDeadlineExceeded, kUnavailable (see above; or closed). kNow: also
  /// kUnavailable that reports a head that is away, long before the deadline.
  void request(ControlRequest request, ControlAnswerer answer, Urgency urgency = Urgency::kWaits);
  /// Not while the head is away: then it is dropped.
  void event(const ControlEvent& event);
  /// Hands on a connection that came in for the head. Errors: kUnavailable.
  Status attach(const Inbound& inbound, FileDescriptor& socket);

  /// Ends the connection, and everything outstanding with kUnavailable; a join() that is under way
  /// with the reason. No callback runs after it.
  void close(const Status& reason);

 private:
  enum class State { kDown, kConnecting, kRegistering, kUp, kClosed };
  struct Joining {
    bool done = false;  // from then on the node returns
    UniqueFunction<void(Status)> on_end;
    Deadline deadline = Deadline::max();
  };
  struct Outstanding {
    ControlRequest request;
    ControlAnswerer answer;
    Deadline deadline;
    Urgency urgency = Urgency::kWaits;
    std::uint64_t sent = 0;  // in this life of the connection; 0: not yet
  };

  void connect();
  void on_connected(Result<std::shared_ptr<Channel>> channel);
  void register_node();
  void on_registered(std::uint64_t life, Result<ControlAnswer> answer);
  void on_message(const std::shared_ptr<Channel>& channel, Message message);
  void on_closed(const Status& why);
  void again_later(const Status& why);
  void send(std::uint64_t number);
  void on_answer(std::uint64_t number, std::uint64_t life, Result<ControlAnswer> answer);
  void end(const Status& why);
  void beat();
  void arm_expiry(Deadline at);
  void expire();
  HeadAbsence::Contact contact() const;

  EventLoop& loop_;
  const Endpoint head_;
  const Credentials credentials_;
  const Callbacks callbacks_;
  const HeadLinkOptions options_;
  State state_ = State::kDown;
  HeadAbsence absence_;
  Joining join_;
  std::shared_ptr<Channel> channel_;
  std::uint64_t life_ = 0;                 // of the connection
  std::uint32_t protocol_ = kProtocolMin;  // that the head speaks
  std::chrono::milliseconds pause_{0};
  std::map<std::uint64_t, Outstanding> outstanding_;  // in the order in which they were made
  std::uint64_t next_ = 1;
  Timer retry_timer_;
  Timer beat_timer_;
  Timer expiry_timer_;
  Deadline expiry_at_ = Deadline::max();
  Lifetime lifetime_;
};

}  // namespace runtime
