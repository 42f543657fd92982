// ActorClient: the caller's side of one actor, shared by all handles to it in a process.
//
// Invariants: Calls leave in the order in which they were made. That holds also when one waits for
// its arguments, for the connection or for the actor's restart. None leaves twice unless it may be
// retried. Each result is settled by its deadline. A process may have very many: what an idle one
// takes is counted in bytes. Its parts have no locks. They are CallQueue (calls that are on no
// connection), ActorLink (the connection, and the search for the actor once it is lost),
// CallNumbers and ResultLeases. This class has the one lock for them, and does what they must not
// do under it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <typeindex>
#include <vector>

#include "runtime/call/actor_link.h"
#include "runtime/call/actor_options.h"
#include "runtime/call/call_numbers.h"
#include "runtime/call/call_owner.h"
#include "runtime/call/call_queue.h"
#include "runtime/call/call_streams.h"
#include "runtime/call/call_target.h"
#include "runtime/call/fwd.h"
#include "runtime/call/method.h"
#include "runtime/call/object_state.h"
#include "runtime/call/result_leases.h"
#include "runtime/call/worker_link.h"
#include "runtime/codec/encoder.h"
#include "runtime/control/membership.h"
#include "runtime/core/result.h"

namespace runtime {

/// The caller's end of one actor: its calls, in order, and their results. Size: the answers of
/// link_'s requests and of each frame have a function, under one lock that keeps the order.
class ActorClient final : public std::enable_shared_from_this<ActorClient>,
                          public WorkerLink::User,
                          public CallOwner,
                          private ActorLink::Requests {
 public:
  /// For ActorClients::client_for().
  ActorClient(CallerContextPtr context, std::shared_ptr<WorkerLink> worker,
              const ActorAddress& address);
  ActorClient(const ActorClient&) = delete;
  ActorClient& operator=(const ActorClient&) = delete;
  ~ActorClient();

  ActorId id() const { return target_.id(); }
  const std::string& class_name() const { return target_.class_name(); }
  /// The process of the newest incarnation known.
  std::shared_ptr<const WorkerLink> worker() const override;
  ActorAddress address() const;
  /// Where the actor is, as another process knew it: what is older is given up.
  void adopt(const ActorAddress& newer);
  const CallerContextPtr& context() const override { return context_; }
  /// "Counter 7f3a0011", for messages.
  std::string describe() const { return target_.describe(); }

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
  bool is_closed() const { return link_.is_closed(); }
  /// Whether calls wait for the actor to be started again.
  bool is_restarting() const override;
  /// Whether objects that the actor made for this process are still held here: they end with its
  /// process.
  bool lends_results() const { return leases_.holds_results(); }

  /// From now on calls fail with `why`; `quiet` is called, once and from any thread, when those
  /// made before have ended. Until resume_calls().
  void hold_calls(Status why, std::function<void()> quiet);
  void resume_calls();

  /// Calls visit(location, whether the call has no answer yet) for each object that is lent to the
  /// actor.
  void visit_lent(const std::function<void(const ObjectLocation&, bool)>& visit) const;

  /// Fails everything in line and everything later with `reason`.
  void close(Status reason);

  std::uint64_t incarnation() const override;
  void on_connected(const WorkerLink* worker, Result<std::shared_ptr<Channel>> channel) override;
  void on_notice(const std::shared_ptr<Channel>& from, const CallNotice& notice,
                 const Message& message) override;
  void on_channel_closed(const Channel* channel, Status reason) override;

 private:
  class Section;

  const CallTarget& target() const override { return target_; }
  Status cancel(const OutgoingCallPtr& call, CancelMode mode) override;
  void tell_taken(const OutgoingCallPtr& call, std::uint64_t count) override;
  ObjectStatePtr call(std::type_index type, const MethodKey& method, Encoder& arguments,
                      std::chrono::milliseconds timeout, std::int32_t retries,
                      std::shared_ptr<StreamState> stream);
  /// A loan of what a result, or a value of a stream, refers to.
  std::shared_ptr<const void> hold_result(const std::shared_ptr<Channel>& from,
                                          std::uint64_t lend_id);
  void when_settled(const BlockedCall& blocked);
  void on_reply(const OutgoingCallPtr& call, Result<Message> reply);
  void on_result(const OutgoingCallPtr& call, Message reply);
  void on_stream_item(const std::shared_ptr<Channel>& from, std::uint64_t sequence,
                      const Message& message);
  void on_timer();

  // Requests of link_, with mutex_ held, and their answers.
  std::shared_ptr<Channel> connect_to(WorkerLink& worker) override;
  void ask_cause(CauseQuestion question) override;
  void on_cause(const CauseQuestion& question, const Result<ActorState>& state);
  void ask_address() override;
  void on_address(const Result<ActorAddress>& address);
  void pause(std::chrono::milliseconds time) override;
  void on_pause_over();

  // With mutex_ held.
  /// Sends what can be sent.
  void pump(Section& section);
  void send(const OutgoingCallPtr& call, Section& section);
  /// The connection of a call that was sent is gone.
  void on_lost(const OutgoingCallPtr& call, const Status& why, Section& section);
  /// A call that was sent and has not run: for the next incarnation, if there is one.
  void put_back(const OutgoingCallPtr& call, const Status& reason);
  void settle_orphans(const Status& why, bool keep_unsent, Section& section);
  void move_to(const ActorAddress& newer, Section& section);
  /// The actor has ended: fails all calls.
  void end(const Status& why, Section& section);
  void arm_timer(Deadline at);

  const CallerContextPtr context_;
  const CallTarget target_;

  mutable std::mutex mutex_;  // guards what follows; held while a call is handed to the channel, so
                              // that calls keep their order
  CallNumbers numbers_;
  CallQueue queue_;
  ActorLink link_;
  ResultLeases leases_;
  CallStreams streams_;
  std::shared_ptr<Timer> timer_;  // fails calls whose deadline passes while they are in the queue;
                                  // touched on the event loop only
  Deadline timer_at_ = Deadline::max();
  std::shared_ptr<ActorClient>
      self_while_busy_;  // handles may go while calls are in line or something is lent
};

}  // namespace runtime
