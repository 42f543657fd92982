// ActorManager: the lives of actors. They are placed, started, stopped, started again, and die.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/head/actor_control.h"
#include "runtime/head/actor_waiters.h"
#include "runtime/head/dead_actors.h"
#include "runtime/head/death_notices.h"
#include "runtime/head/head_context.h"
#include "runtime/head/placement_queue.h"
#include "runtime/head/restart_pace.h"

namespace runtime {

class ActorManager final : public ActorControl {
 public:
  struct Hooks {
    std::function<void(const ActorRecord&)> alive;
    /// One that outlives its job is dead.
    std::function<void(JobId)> outliving_died;
  };

  /// `waiters` are answered as the actors' lives go on.
  ActorManager(const HeadContext& context, PlacementQueue& queue, ActorWaiters& waiters,
               Hooks hooks)
      : context_(context),
        queue_(queue),
        waiters_(waiters),
        hooks_(std::move(hooks)),
        notices_(context),
        dead_(context),
        pace_(context) {}

  // Reports of nodes.
  void serve(const HeadCall& call, control::ActorExited& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::ActorsExited& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::ParkActor& body, ControlAnswerer answer);

  /// It has just been added: it starts, or waits for a place.
  void begin(ActorId actor, Deadline deadline);
  /// For the queue. False while it has to wait.
  bool place(ActorId actor, Deadline deadline);
  /// For the queue: no place until its deadline.
  void late(ActorId actor);

  void stop(const ActorRecord& record, std::chrono::milliseconds grace, std::string reason,
            bool drain) override;
  void stop_torn(const ActorRecord& record, const std::string& text,
                 std::chrono::milliseconds grace) override;
  void die(ActorId actor, const DeathCause& cause, const Status& why) override;

  /// After ClusterTables::restore: takes the account of what runs, and queues what waits.
  void restored();
  /// Brings what the tables have for the node together with what runs there.
  void node_returned(const control::RegisterNode& body);
  /// `torn`: the groups that had a bundle there.
  void node_lost(NodeId node, const std::string& text, const std::set<GroupId>& torn);

  void tick(Deadline now) { dead_.tick(now); }
  Deadline next_tick() const { return dead_.next_tick(); }

 private:
  void start(ActorId actor, Deadline deadline);
  void on_started(ActorId actor, std::uint64_t incarnation, Result<ControlAnswer> started);
  void on_start_failed(const ActorRecord& record, const Status& why);
  void on_alive(const ActorRecord& record, ActorAddress address);
  /// What it owns ends; it is started again if its options allow that, else it is dead.
  void incarnation_ended(ActorId actor, const DeathCause& cause);
  void restart(ActorId actor, const DeathCause& cause);
  void end_owned(ActorId owner);
  /// Ends it for good, if it has not ended yet.
  void end(ActorId actor, const std::string& reason);

  const HeadContext& context_;
  PlacementQueue& queue_;
  ActorWaiters& waiters_;
  const Hooks hooks_;
  DeathNotices notices_;
  DeadActors dead_;
  RestartPace pace_;
};

}  // namespace runtime
