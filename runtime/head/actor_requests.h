// ActorRequests: the requests of clients about actors: to create, find, watch and end them.
#pragma once

#include "runtime/control/control.h"
#include "runtime/head/actor_manager.h"
#include "runtime/head/actor_waiters.h"
#include "runtime/head/head_context.h"
#include "runtime/head/placement_queue.h"
#include "runtime/head/request_ledger.h"

namespace runtime {

class ActorRequests {
 public:
  ActorRequests(const HeadContext& context, RequestLedger& ledger, PlacementQueue& queue,
                ActorWaiters& waiters, ActorManager& actors)
      : context_(context), ledger_(ledger), queue_(queue), waiters_(waiters), actors_(actors) {}

  void serve(const HeadCall& call, control::CreateActor& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::ResolveActor& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::QueryActor& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::WatchActor& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::ConstructorAwaited& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::SaveState& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::KillActor& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::TerminateActor& body, ControlAnswerer answer);

 private:
  /// Fills in what the head decides: namespace, owner, whether it outlives the job. Errors: its
  /// owner has ended.
  Status complete(const HeadCall& call, ActorSpec& spec) const;
  Status check_new(const HeadCall& call, const ActorSpec& spec) const;
  /// The living actor of that name; null: there is none.
  const ActorRecord* named(const HeadCall& call, const std::string& name,
                           const std::string& name_space) const;
  void answer_at_end(ActorId actor, Deadline deadline, ControlAnswerer answer);

  const HeadContext& context_;
  RequestLedger& ledger_;
  PlacementQueue& queue_;
  ActorWaiters& waiters_;
  ActorManager& actors_;
};

}  // namespace runtime
