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
#include "runtime/node/head_restart.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/endpoint.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/handshake.h"

namespace runtime {

struct HeadLinkOptions {
  /// Between two signs of life asked for over this connection, beside those that renew the lease
  /// (LeaseKeeper): an idle connection that is broken shows when something is sent, and a node that
  /// was given up ends what it runs that much sooner.
  std::chrono::milliseconds heartbeat{250};
  /// A head that has answered nothing for so long is connected to anew: the connection may be dead
  /// in one direction.
  std::chrono::milliseconds silence_max{30000};
  /// How long the head may be away before the node gives up: one whose journal outlives its machine
  /// or that runs beside this node, and another, which can only come back as a process beside the
  /// same node.
  std::chrono::milliseconds patience{600'000};
  std::chrono::milliseconds patience_brief = kHeadAwayMax;
  /// For whoever wants to know rather than to wait (Urgency::kNow): so long the head may have been
  /// away; and so long it may have been silent while its connection is open, or while it reads its
  /// journal or is started by this node.
  std::chrono::milliseconds away_max{2000};
  std::chrono::milliseconds mute_max{5000};
};

/// Lives on the event loop. Requests wait while there is no head, and those that were under way
/// when it died are made again: the head knows them by what they name, or by the request's id
/// (request_ids.h).
class HeadLink {
 public:
  struct Callbacks {
    std::function<control::RegisterNode()>
        registration;  // what the node is, and what runs there now
    std::function<void(ControlRequest request, ControlAnswerer answer)> request;  // of the head's
    std::function<void(const ControlEvent& event)> event;
    /// The node is no part of the cluster any more. kCancelled: the head has declared it dead; what
    /// it runs has been replaced, and it may join anew. kUnavailable: the head was away for too
    /// long. Once.
    std::function<void(Status why)> lost;
    /// What keeps the head's process from being started, if this node is to start it; success:
    /// nothing that it knows. May be empty.
    std::function<Status()> head_trouble = {};
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
  /// kUnavailable that tells of a head that is away, long before the deadline.
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
  /// When the head has been away for too long for whom it is urgent.
  Deadline too_long_away_at() const;
  std::chrono::milliseconds patience_now() const;
  Status describe_absence() const;
  /// ": starting the head: ..."; empty: nothing is known to keep it from starting.
  std::string trouble_text() const;

  EventLoop& loop_;
  const Endpoint head_;
  const Credentials credentials_;
  const Callbacks callbacks_;
  const HeadLinkOptions options_;
  State state_ = State::kDown;
  bool joined_ = false;   // once: from then on it returns
  bool durable_ = false;  // as the head said
  UniqueFunction<void(Status)> on_joined_;
  Deadline join_deadline_ = Deadline::max();
  std::shared_ptr<Channel> channel_;
  std::uint64_t life_ = 0;                 // of the connection
  std::uint32_t protocol_ = kProtocolMin;  // that the head speaks
  Deadline down_since_ = Deadline::min();
  Status why_down_;
  std::chrono::milliseconds pause_{0};
  std::map<std::uint64_t, Outstanding> outstanding_;  // in the order in which they were made
  std::uint64_t next_ = 1;
  Deadline heard_ = Deadline::min();
  Timer retry_timer_;
  Timer beat_timer_;
  Timer expiry_timer_;
  Deadline expiry_at_ = Deadline::max();
  Lifetime lifetime_;
};

}  // namespace runtime
