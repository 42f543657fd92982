// CallQueue: one actor's calls that are on no connection. It has those not sent yet, in their
// order, and those whose connection was lost before their reply came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "runtime/call/fwd.h"
#include "runtime/core/clock.h"
#include "runtime/core/result.h"

namespace runtime {

class CallNumbers;

/// A call that is over; its result is settled once the owner's lock is released.
struct FailedCall {
  OutgoingCallPtr call;
  Status why;
};

/// What keeps a call from being sent. The owner subscribes to it once its lock is released, and
/// then says CallQueue::on_settled().
struct BlockedCall {
  ObjectStatePtr blocker;
  std::weak_ptr<OutgoingCall> aside;  // empty: it is the first in line, and holds up the others
};

/// Calls leave in the order in which they were pushed, also when they come back unserved. An idle
/// queue is small: a process may have very many. Not thread-safe.
class CallQueue {
 public:
  /// `out_of_order`: a call whose arguments are not there does not hold up later ones.
  CallQueue(CallNumbers& numbers, bool out_of_order);
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;
  ~CallQueue();

  /// Last in line.
  void push(OutgoingCallPtr call);
  /// Takes the next call out that can be sent. Null: there is none; what the first in line waits
  /// for is in `blocked`, unless it was before.
  OutgoingCallPtr pop(std::vector<BlockedCall>& blocked);
  /// `blocker` of a BlockedCall has settled.
  void on_settled(const ObjectState* blocker, const std::weak_ptr<OutgoingCall>& aside);
  /// A call that was sent and has not run: before those that were made after it.
  void put_back(OutgoingCallPtr call);
  /// Takes out a call that was not sent, or says that it is not here.
  bool remove(const OutgoingCallPtr& call);

  /// A call that was sent, and its connection is gone.
  void add_orphan(OutgoingCallPtr call) { orphans_.push_back(std::move(call)); }
  /// The line waits for word of the actor, as those do that were sent.
  void orphan_line();
  /// Puts those orphans that may be sent (again) back in line; the others fail. `keep_unsent`:
  /// those not sent stay in line at no cost. Whether there were any to put back.
  bool settle_orphans(const Status& why, bool keep_unsent, std::vector<FailedCall>& failed);

  /// Those in line, but for those set aside for their arguments.
  void fail_line(const Status& why, std::vector<FailedCall>& failed);
  void fail_all(const Status& why, std::vector<FailedCall>& failed);
  /// Those whose time is up. `restarting`: the actor is, for the message.
  void expire(Deadline now, bool restarting, std::vector<FailedCall>& failed);
  Deadline earliest_deadline() const;

  bool has_line() const { return !line_.empty(); }
  bool has_orphans() const { return !orphans_.empty(); }
  /// Calls that were not sent.
  bool is_waiting() const { return !line_.empty() || aside_ != nullptr; }
  bool is_empty() const { return !is_waiting() && orphans_.empty(); }

  /// Until resume(), as often as held, no calls may be made, because of `why`. `quiet` is among
  /// those of take_quiet().
  void hold(Status why, std::function<void()> quiet);
  void resume();
  /// Null: calls may be made.
  const Status* held() const;
  /// To be called, without a lock, now that no call is outstanding.
  std::vector<std::function<void()>> take_quiet();

 private:
  struct Hold;

  bool expire(const OutgoingCallPtr& call, Deadline now, bool restarting,
              std::vector<FailedCall>& failed);
  bool take_from_aside(const OutgoingCall& call);

  CallNumbers& numbers_;  // of the calls that were sent
  const bool out_of_order_;
  std::uint64_t order_ = 0;          // calls made
  std::list<OutgoingCallPtr> line_;  // in order; a list takes no memory while empty
  /// Those whose arguments are not there yet, by order, if out of order. Null: there are none.
  std::unique_ptr<std::map<std::uint64_t, OutgoingCallPtr>> aside_;
  std::vector<OutgoingCallPtr> orphans_;
  const ObjectState* watched_ = nullptr;  // what the first in line is known to wait for
  std::unique_ptr<Hold> hold_;            // null: calls may be made
};

}  // namespace runtime
