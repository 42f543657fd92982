// ActorLink: the way from one caller to one actor. It has the connection to the actor's process,
// and the search for that process once the connection has ended.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/call/fwd.h"
#include "runtime/control/membership.h"
#include "runtime/core/backoff.h"
#include "runtime/core/result.h"

namespace runtime {

/// Asked of the head when a connection has ended, or an incarnation refuses calls.
struct CauseQuestion {
  std::uint64_t incarnation = 0;
  Status reason;
  bool refused = false;  // the connection is fine; the incarnation takes no more calls
};

/// What the head's answer means for the calls that have no reply.
struct CauseVerdict {
  Status why;              // for those that are not sent again
  bool has_ended = false;  // the actor, for good
  bool restarts = false;   // or has already: what was not sent stays in line
};
/// `actor`: its description, for messages.
CauseVerdict judge(const CauseQuestion& question, const Result<ActorState>& state,
                   const std::string& actor);

/// Once a newer incarnation of the actor is known, nothing of an older one counts any more. Not
/// thread-safe, where nothing else is said.
class ActorLink {
 public:
  /// What the link asks of others. No answer comes from within the request.
  class Requests {
   public:
    /// The connection, if it is open; else it is made, for set_connected().
    virtual std::shared_ptr<Channel> connect_to(WorkerLink& worker) = 0;
    /// Asks what became of the actor, for on_cause().
    virtual void ask_cause(CauseQuestion question) = 0;
    /// Asks where the actor is now, for on_address().
    virtual void ask_address() = 0;
    /// Waits that long, then calls on_pause_over().
    virtual void pause(std::chrono::milliseconds time) = 0;

   protected:
    ~Requests() = default;
  };

  ActorLink(Requests& requests, std::shared_ptr<WorkerLink> worker, std::uint64_t incarnation);
  ActorLink(const ActorLink&) = delete;
  ActorLink& operator=(const ActorLink&) = delete;
  ~ActorLink();

  /// The process of the newest incarnation known.
  const std::shared_ptr<WorkerLink>& worker() const { return worker_; }
  std::uint64_t incarnation() const { return incarnation_; }
  /// Null: it is not open.
  const std::shared_ptr<Channel>& channel() const { return channel_; }

  /// The next call connects.
  bool is_idle() const { return state_ == State::kIdle; }
  bool is_open() const { return state_ == State::kOpen; }
  bool is_asking() const { return state_ == State::kAsking; }
  bool is_resolving() const { return state_ == State::kResolving; }
  bool is_connecting_to(const WorkerLink* worker) const {
    return state_ == State::kConnecting && worker == worker_.get();
  }
  /// The actor has ended. Any thread.
  bool is_closed() const { return is_closed_.load(); }
  const Status& closed() const { return closed_; }
  /// Calls of earlier incarnations may come back unserved, and go before all that wait.
  bool takes_calls() const { return state_ == State::kOpen && older_in_flight_ == 0; }

  /// Calls are waiting: an idle link connects, or first finds out where the actor is.
  void open();
  void set_connected(std::shared_ptr<Channel> channel);
  /// Gives the connection up.
  void reset();
  void close(Status why);

  /// A call was sent to this incarnation.
  void on_sent() { ++in_flight_; }
  /// A call that was sent to that incarnation has ended, one way or the other. Whether calls may be
  /// sent again because it was the last of earlier ones.
  bool on_answered(std::uint64_t incarnation);
  /// A reply came: attempts to send again begin with short pauses.
  void on_reply() { backoff_.reset(); }

  /// Calls on `from` that have no reply have not run.
  void set_drained(const std::shared_ptr<Channel>& from) { drained_ = from; }
  bool is_drained(const std::shared_ptr<Channel>& channel) const {
    return channel == drained_.lock();
  }

  /// What became of the actor. `refused_by`: not 0 if the connection is fine, and that incarnation
  /// takes no more calls.
  void ask(Status reason, std::uint64_t refused_by = 0);
  /// An actor that takes no more calls is about to end. The head waits a moment for that, and is
  /// asked again as long as a call has time.
  bool is_ending(const CauseQuestion& question, const Result<ActorState>& state) const;
  /// The actor has not ended for good. Pauses before the next attempt if calls wait and nothing is
  /// known that would make it succeed.
  void on_cause(const CauseQuestion& question, bool restarts, bool calls_wait);
  /// The answer to ask_address(); a newer address was moved to before.
  void on_address(const Status& status);
  void on_pause_over();
  /// To a newer incarnation. Whether it is in another process.
  bool move_to(std::shared_ptr<WorkerLink> worker, std::uint64_t incarnation);

 private:
  enum class State {
    kIdle,
    kConnecting,
    kOpen,
    kAsking,     // the connection is gone; the node is asked why
    kResolving,  // the actor is being restarted; the node will say where it is
    kPausing,    // the last attempts have failed, and calls are to be sent again
    kClosed,     // for good, see closed_
  };

  Requests& requests_;
  std::shared_ptr<WorkerLink> worker_;
  std::uint64_t incarnation_;
  State state_ = State::kIdle;
  std::atomic<bool> is_closed_{false};  // state_ is kClosed
  bool stale_ = false;                  // that incarnation has ended: resolve before connecting
  Backoff backoff_;                     // of attempts to send again, until a reply comes
  std::uint32_t in_flight_ = 0;         // sent to this incarnation, without a reply
  std::uint32_t older_in_flight_ = 0;   // the same of earlier ones
  Status closed_;
  std::shared_ptr<Channel> channel_;
  std::weak_ptr<Channel> drained_;
};

}  // namespace runtime
