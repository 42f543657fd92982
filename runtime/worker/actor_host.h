// ActorHost: one actor in its worker process, with the calls in line before it. It runs them in
// order, and one at a time unless the actor was given more.
//
// A "turn" is the host posted to the executor, or being run by one of its threads. There are as
// many turns as calls that may run at once, at most; one that finds nothing to run ends. Invariant:
// when a job is runnable, some turn is not inside of a job.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/call/actor_options.h"
#include "runtime/call/fwd.h"
#include "runtime/call/invoke.h"
#include "runtime/call/registry.h"
#include "runtime/core/result.h"
#include "runtime/transport/unique_function.h"
#include "runtime/worker/actor_activity.h"
#include "runtime/worker/actor_job.h"
#include "runtime/worker/actor_lanes.h"
#include "runtime/worker/coroutine_host.h"
#include "runtime/worker/host_context.h"
#include "runtime/worker/parked_calls.h"
#include "runtime/worker/runnable.h"

namespace runtime {

/// A process may have very many. Any thread may call any method but run(). Size: the steps of a
/// turn have a function each, most of them under one mutex.
class ActorHost final : public Runnable,
                        public CoroutineHost,
                        public std::enable_shared_from_this<ActorHost> {
 public:
  /// `shared`: other actors run in the process, so that this one may neither pin nor end it.
  ActorHost(std::shared_ptr<const HostContext> context, ActorId id, std::uint64_t incarnation,
            bool shared);
  ActorHost(const ActorHost&) = delete;
  ActorHost& operator=(const ActorHost&) = delete;

  ActorId id() const { return id_; }
  /// Of an actor that is built.
  const std::string& class_name() const;
  std::uint64_t incarnation() const { return incarnation_; }

  /// Puts the constructor in line; `answer` is called on the thread that ran it. Once, before any
  /// call.
  void build(ActorSpec spec, std::function<void(Status)> answer);
  /// Puts a call in line, or answers that it cannot be.
  void push(std::unique_ptr<ActorJob> job);
  /// The caller does not want this call any more: in line it never runs, and is answered at once;
  /// running it is told.
  void cancel(const Channel* channel, std::uint64_t sequence, CancelMode mode);
  /// A call of this channel's is awaited by one that others wait for in turn. Passes that on to the
  /// call that this one cannot end before, if there is a single one and it waits itself.
  void on_waits(const Channel* channel, std::uint64_t sequence, const std::vector<WaitStep>& waits);
  /// Ends the actor after the jobs that are running, which are told. It is destroyed, and calls in
  /// line are answered that it is gone. Then `done` runs (at once when the actor was stopped
  /// before).
  void stop(std::function<void()> done);
  /// Answers in the place of the jobs that go on though the actor was stopped: their callers wait
  /// no more. `channels`: those of callers that are open.
  void abandon(const std::vector<std::shared_ptr<Channel>>& channels);
  /// Takes no more calls; ends as stop() does once those in line have run.
  void stop_after_calls(std::function<void()> done);
  /// The same as stop() at once on the calling thread, when the executor has come to rest.
  void stop_at_rest();

  /// The node is about to leave: on_drain() of the actor's class runs before the calls in line,
  /// once it is built.
  void tell_of_drain();

  void run_in_turn(UniqueFunction<void()> task) override;
  void end_coroutine(CoroutineCall& call, Status status) override;
  void end_fetch(CoroutineCall& call) override;

  bool run(std::size_t jobs_max) override;

 private:
  struct Turn;
  struct Running {
    const Channel* channel;
    std::uint64_t sequence;
    const Lane* lane;
    FrameKind kind{};           // of the request
    std::uint64_t request = 0;  // its id
    bool operator==(const Running&) const = default;
  };

  /// What an actor with coroutine methods has besides.
  struct Coroutines {
    std::deque<UniqueFunction<void()>> tasks;
    std::uint32_t in_progress = 0;
    std::vector<Running> alone;  // those of lanes that run one call at a time
  };

  void next(Turn& turn, bool take);
  // With mutex_ held.
  std::unique_ptr<ActorJob> take_job(Lane** lane);
  const Running* find_running(const Channel* channel, std::uint64_t sequence) const;
  void park(std::unique_ptr<ActorJob> job, const Lane* lane);
  void take_back(const Channel* channel, const Lane* lane);
  std::size_t in_line() const { return lanes_.size() + (parked_ ? parked_->size() : 0); }
  bool wants_turn() const { return turns_ == jobs_ && turns_ < turns_max_ && lanes_.is_runnable(); }

  void unpark(const Channel* channel);
  bool has_tasks() const { return coroutines_ && !coroutines_->tasks.empty(); }
  bool is_at_rest() const { return jobs_ == 0 && !(coroutines_ && coroutines_->in_progress > 0); }
  void begin_coroutine(Turn& turn);
  void finish();
  void save_at_end();
  void run_drain_hook();
  void give_up_resources_while_waiting();
  Status prepare(const ExecutionOptions& execution, bool one_thread) const;
  Status check_call(const ActorJob& job, Deadline now) const;
  Status construct(ActorJob& job);
  Status execute(ActorJob& job, const CallContext& context, InvokeOutput& output, Deadline now);
  /// Nothing once the call has failed, or when its result cannot be stored, which the status says
  /// then.
  ObjectValue store_result(Status& status, InvokeOutput& output, const CallContext& call);
  void send_reply(std::unique_ptr<ActorJob> job, Status status, ObjectValue value, Flush flush);

  const std::shared_ptr<const HostContext> context_;
  const ActorId id_;
  const std::uint64_t incarnation_;
  const bool shared_;

  std::shared_ptr<void> actor_;  // set by the constructor's turn, before there is another; as is
  bool saves_ = false;           // whether it will be started again with what it saved
  ActorActivity activity_;       // where it is guarded, by mutex_

  std::mutex mutex_;                   // guards what follows
  const ActorClass* class_ = nullptr;  // null until the actor is built
  ActorLanes lanes_;
  std::unique_ptr<ParkedCalls> parked_;     // null: none are
  std::vector<Running> running_;            // calls inside of turns
  std::atomic<bool> abandoned_{false};      // those that run are answered already
  std::unique_ptr<Coroutines> coroutines_;  // null: the class has none
  std::function<void()> stopped_;
  std::uint32_t turns_ = 0;
  std::uint32_t jobs_ = 0;  // turns inside of a job
  std::uint32_t turns_max_ = 1;
  bool stops_after_calls_ = false;
  bool stopping_ = false;
  bool finished_ = false;
};

/// Answers a call with a failure. `gone`: there is no such actor here (any more); the caller asks
/// the head what became of it.
void refuse_call(const ActorJob& job, Status why, bool gone, Flush flush);

}  // namespace runtime
