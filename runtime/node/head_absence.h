// HeadAbsence: since when a node hears nothing of the head, how long that may last, and what its
// user is notified of it.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "runtime/core/clock.h"
#include "runtime/core/result.h"
#include "runtime/node/head_restart.h"
#include "runtime/transport/endpoint.h"

namespace runtime {

struct HeadLinkOptions {
  /// Between two signs of life asked for over this connection, besides those that renew the lease
  /// (LeaseKeeper). An idle connection that is broken shows when something is sent, and a node that
  /// was given up ends what it runs that much sooner.
  std::chrono::milliseconds heartbeat{250};
  /// A head that has answered nothing for this long is connected to again: the connection may be
  /// dead in one direction.
  std::chrono::milliseconds silence_max{30000};
  /// How long the head may be away before the node gives up. The first is for a head whose journal
  /// outlives its machine or that runs next to this node. The second is for another head, which can
  /// only come back as a process next to the same node.
  std::chrono::milliseconds patience{600'000};
  std::chrono::milliseconds patience_brief = kHeadAwayMax;
  /// For callers that want to know rather than to wait (Urgency::kNow). The first: how long the
  /// head may have been away. The second: how long it may have been silent while its connection is
  /// open, while it reads its journal, or while this node starts it.
  std::chrono::milliseconds away_max{2000};
  std::chrono::milliseconds mute_max{5000};
};

/// Lives on the event loop.
class HeadAbsence {
 public:
  /// How much of a connection there is.
  enum class Contact { kNone, kRegistering, kUp };

  /// `trouble`: what keeps the head's process from being started, if this node is to start it. May
  /// be empty.
  HeadAbsence(const Endpoint& head, const HeadLinkOptions& options,
              std::function<Status()> trouble);

  /// The head has said something.
  void heard() { heard_ = steady_now(); }
  Deadline heard_at() const { return heard_; }
  /// The connection is gone from now on.
  void begin() { since_ = steady_now(); }
  /// Why the last try to connect has failed.
  void set_reason(const Status& why) { why_ = why; }
  const Status& reason() const { return why_; }
  /// Whether the head's journal outlives its machine, as it says.
  void set_durable(bool durable) { durable_ = durable; }

  /// Success while the head may still come back; else kUnavailable, for the node to end with.
  Status check_patience() const;
  /// When it has been away for too long for a request that is urgent.
  Deadline too_long_at(Contact contact) const;
  /// For that request: kUnavailable, since when, why, what goes on meanwhile, and what a person can
  /// do.
  Status describe(Contact contact) const;

 private:
  std::chrono::milliseconds patience() const;
  /// ": starting the head: ..."; empty: nothing is known to keep it from starting.
  std::string trouble_text() const;

  const Endpoint head_;
  const HeadLinkOptions options_;
  const std::function<Status()> trouble_;
  bool durable_ = false;
  Deadline heard_ = Deadline::min();
  Deadline since_ = Deadline::min();
  Status why_;
};

}  // namespace runtime
