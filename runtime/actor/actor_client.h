// ActorClient: the caller's side of one actor, shared by all handles to it in a process.
//
// Invariants: calls leave in the order in which they were made, also when one waits for its
// arguments, for the connection or for the actor's restart; none leaves twice unless it may be
// retried; each result is settled by its deadline; once a newer incarnation of the actor is known,
// nothing of an older one counts any more. A process may have very many: what an idle one takes is
// counted in bytes. What a call lends (objects its arguments refer to) is held until the actor says
// that it holds none of it any more, or the connection ends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <typeindex>
#include <vector>

#include "runtime/actor/actor_options.h"
#include "runtime/actor/encoder.h"
#include "runtime/actor/fwd.h"
#include "runtime/actor/method.h"
#include "runtime/actor/object_state.h"
#include "runtime/control/membership.h"
#include "runtime/core/backoff.h"
#include "runtime/core/result.h"

namespace runtime {

class ActorClient : public std::enable_shared_from_this<ActorClient> {
 public:
  ActorClient(std::shared_ptr<Process> process, std::shared_ptr<WorkerLink> worker,
              const ActorAddress& address);
  ActorClient(const ActorClient&) = delete;
  ActorClient& operator=(const ActorClient&) = delete;
  ~ActorClient();

  ActorId id() const { return id_; }
  /// The process of the newest incarnation known.
  std::shared_ptr<const WorkerLink> worker() const;
  ActorAddress address() const;
  /// Where the actor is, as another process knew it: what is older is given up.
  void adopt(const ActorAddress& newer);
  const std::shared_ptr<Process>& process() const { return process_; }
  /// "Counter 7f3a0011", for messages.
  std::string describe() const;

  /// Sends a call, or puts it in line. Never blocks on the network; what goes wrong ends up in the
  /// returned object. Any thread.
  ObjectStatePtr call(std::type_index type, const MethodKey& method, Encoder& arguments,
                      std::chrono::milliseconds timeout, std::int32_t retries = 0);
  /// One call of each client, all of one process, with the same arguments, encoded and stored once,
  /// and the same deadline.
  static std::vector<ObjectStatePtr> call_all(std::span<ActorClient* const> clients,
                                              std::type_index type, const MethodKey& method,
                                              Encoder& arguments, std::chrono::milliseconds timeout,
                                              std::int32_t retries = 0);

  /// The same of a method that yields values: they come through the stream, and the result settles
  /// (without a value) when it has returned.
  ObjectStatePtr call_stream(std::type_index type, const MethodKey& method, Encoder& arguments,
                             std::chrono::milliseconds timeout,
                             std::shared_ptr<StreamState> stream);
  /// Tells the actor how many values of the call's stream were taken.
  static void tell_taken(const std::shared_ptr<OutgoingCall>& call, std::uint64_t count);

  /// Wants the call to end; its result settles when the actor has answered. At once if it has not
  /// been sent. Errors: kInvalidArgument (a call of a shared actor cannot be forced; it was asked
  /// all the same).
  static Status cancel(const std::shared_ptr<OutgoingCall>& call, CancelMode mode);

  /// When a call ends at the latest, and how long that is in all (0: not known), for messages.
  struct TimeLimit {
    TimeLimit(Deadline at) : deadline(at) {}  // NOLINT(google-explicit-constructor)
    explicit TimeLimit(std::chrono::milliseconds time);
    Deadline deadline;
    std::chrono::milliseconds timeout{0};
  };

  /// As call(), with a method that is known and arguments that are stored already.
  ObjectStatePtr submit(const MethodEntry* method, ObjectValue arguments, TimeLimit limit,
                        std::int32_t retries, std::shared_ptr<StreamState> stream = nullptr);
  /// Whether the actor is known to have ended. Takes no lock, so that it may be asked under any.
  bool is_closed() const { return is_closed_.load(); }
  /// Whether objects that the actor made for this process are still held here: they end with its
  /// process.
  bool lends_results() const { return results_held_.load() > 0; }

  /// From now on calls fail with `why`; `quiet` is called, once and from any thread, when those
  /// made before have ended. Until resume_calls().
  void hold_calls(Status why, std::function<void()> quiet);
  void resume_calls();

  /// Calls visit(location, whether the call has no answer yet) for each object that is lent to the
  /// actor.
  void visit_lent(const std::function<void(const ObjectLocation&, bool)>& visit) const;

  /// Fails everything in line and everything later with `reason`.
  void close(Status reason);

  // For the WorkerLink, on the event loop.
  void on_connected(const WorkerLink* worker, Result<std::shared_ptr<Channel>> channel);
  void on_notice(const std::shared_ptr<Channel>& from, const CallNotice& notice,
                 const Message& message);
  void on_channel_closed(const Channel* channel, Status reason);

 private:
  using CallPtr = std::shared_ptr<OutgoingCall>;
  enum class Link {
    kNone,  // the next call connects
    kConnecting,
    kOpen,
    kAsking,     // the connection is gone; the node is asked why
    kResolving,  // the actor is being restarted; the node will say where it is
    kPausing,    // the last attempts have failed, and calls are to be sent again
    kClosed,     // for good, see closed_
  };
  struct Hold;
  class ResultLease;
  class Section;

  ObjectStatePtr call(std::type_index type, const MethodKey& method, Encoder& arguments,
                      std::chrono::milliseconds timeout, std::int32_t retries,
                      std::shared_ptr<StreamState> stream);
  void on_stream_item(const std::shared_ptr<Channel>& from, std::uint64_t sequence,
                      const Message& message);
  Result<const MethodEntry*> find_method(std::type_index type, const MethodKey& method);

  // With mutex_ held.
  void pump(Section& section);
  void send(const CallPtr& call, Section& section);
  void acknowledge(std::uint64_t sequence);
  /// What became of the actor. `refused_by`: not 0 if the connection is fine, and that incarnation
  /// takes no more calls.
  void ask_cause(Status reason, std::uint64_t refused_by = 0);
  void end_for_good(const Status& why);
  void resolve();
  void try_again_later();
  void move_to(const ActorAddress& newer, Section& section);
  /// A call that was sent and has not run.
  void put_back(const CallPtr& call, const Status& reason);
  /// Puts those that may be sent (again) back in line; the others fail.
  void settle_orphans(Section& section, const Status& why, bool keep_unsent);
  void arm_timer(Deadline at);

  // With mutex_ held.
  bool is_out_of_order() const { return caller_options_ && caller_options_->out_of_order; }
  bool is_waiting() const { return !line_.empty() || aside_ != nullptr; }
  bool is_quiet() const;
  /// Those not sent.
  void fail_waiting(Section& section, const Status& why);
  void set_aside(CallPtr call, ObjectStatePtr blocker, Section& section);
  Deadline earliest_deadline() const;

  /// From the call's wish and what is known of the method.
  std::chrono::milliseconds limit(const MethodEntry& method,
                                  std::chrono::milliseconds timeout) const;
  void go_on(const CallPtr& call);
  void settle(const CallPtr& call, const Status& why);
  void watch(const ObjectStatePtr& blocker);
  void on_cause(std::uint64_t incarnation, Status reason, bool refused, Result<ActorState> state);
  void on_resolved(Result<ActorAddress> address);
  void on_pause_over();
  void record(const OutgoingCall& call, bool failed) const;
  void on_reply(const CallPtr& call, Result<Message> reply);
  void on_gone(const CallPtr& call, const Status& reason);
  void on_timer();

  std::atomic<std::uint32_t> results_held_{0};  // ResultLeases
  std::atomic<bool> is_closed_{false};          // link_ is kClosed
  const std::shared_ptr<Process> process_;
  const ActorId id_;
  const std::string class_name_;
  const std::string encoded_caller_options_;
  std::unique_ptr<const CallerOptions> caller_options_;  // constant; null: the default ones

  mutable std::mutex mutex_;  // guards what follows; held while a call is handed to the channel, so
                              // that calls keep their order
  std::shared_ptr<WorkerLink> worker_;
  std::uint64_t incarnation_;
  bool stale_ = false;           // that incarnation has ended: resolve() before connecting
  Backoff backoff_;              // of attempts to send again, until a reply comes
  std::uint32_t in_flight_ = 0;  // sent to this incarnation, without a reply
  std::uint32_t older_in_flight_ =
      0;  // the same of earlier ones: they may come back unserved, and go before all that wait
  std::uint64_t order_ = 0;  // calls made
  Link link_ = Link::kNone;
  Status closed_;
  const ActorClass* class_ = nullptr;  // known after the first call
  std::shared_ptr<Channel> channel_;
  std::weak_ptr<Channel> drained_;  // calls on it that have no reply have not run
  std::list<CallPtr> line_;  // calls not sent yet, in order; a list takes no memory while empty
  /// Of an actor that runs calls out of order: those whose arguments are not there yet. Null: there
  /// are none.
  std::unique_ptr<std::map<std::uint64_t, CallPtr>> aside_;  // by order
  std::unique_ptr<Hold> hold_;                               // null: calls may be made
  std::vector<CallPtr> orphans_;          // sent, without a reply, and their connection is gone
  const ObjectState* watched_ = nullptr;  // the unsettled argument whose action will call pump()
  std::shared_ptr<Timer> timer_;  // fails calls whose deadline passes while they are in line;
                                  // touched on the event loop only
  Deadline timer_at_ = Deadline::max();
  std::uint64_t sequence_ = 0;
  std::uint64_t acknowledged_ = 0;             // all calls up to here have ended
  std::set<std::uint64_t> ended_beyond_;       // ended after an earlier one that has not
  std::map<std::uint64_t, ObjectValue> lent_;  // by sequence of the call
  /// By sequence of the call; null while there was none.
  std::unique_ptr<std::map<std::uint64_t, std::weak_ptr<StreamState>>> streams_;
  std::shared_ptr<ActorClient>
      self_while_busy_;  // handles may go while calls are in line or something is lent
};

}  // namespace runtime
