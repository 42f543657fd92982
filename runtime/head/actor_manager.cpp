#include "runtime/head/actor_manager.h"

#include <utility>

#include "runtime/core/log.h"
#include "runtime/head/actor_rules.h"
#include "runtime/head/head_words.h"

namespace runtime {

using namespace head_words;

// -- Starts

void ActorManager::begin(ActorId actor, Deadline deadline) {
  if (!place(actor, deadline)) queue_.add(actor, deadline);
}

bool ActorManager::place(ActorId actor, Deadline deadline) {
  const ActorRecord* record = context_.tables.actors().find(actor);
  if (!record || record->phase != ActorPhase::kPending) return true;  // it died waiting
  if (record->spec.bundle) {
    const GroupState* group = context_.tables.groups().find(record->spec.bundle->group);
    if (group && !group->placed) {
      context_.commit(
          command::ActorWaits{actor, "its placement group waits: " + group->pending_reason});
      return false;
    }
  }
  auto place = context_.scheduler.place_actor(record->spec);
  if (place.ok()) {
    context_.commit(command::ActorPlaced{actor, *std::move(place),
                                         context_.tables.actors().next_incarnation()});
    waiters_.changed(actor);
    start(actor, record->restarts > 0 ? context_.now() + record->spec.create_timeout : deadline);
    return true;
  }
  if (place.status().code() == ErrorCode::kResourceExhausted) {
    context_.commit(command::ActorWaits{actor, place.status().message()});
    return false;
  }
  die(actor, cause_of(place.status().message()), place.status());
  return true;
}

void ActorManager::late(ActorId actor) {
  const ActorRecord* record = context_.tables.actors().find(actor);
  if (!record || record->phase != ActorPhase::kPending) return queue_.remove(actor);
  const Status why = resource_exhausted(record->pending_reason);
  die(actor, cause_of("not placed before its deadline: " + why.message()), why);
}

void ActorManager::start(ActorId actor, Deadline deadline) {
  const ClusterTables& tables = context_.tables;
  const ActorRecord& record = *tables.actors().find(actor);
  const JobRecord* job = tables.jobs().find(record.job);
  // Pending actors die with their job, and those that outlive it keep it known.
  CHECK(job != nullptr);
  control::StartActor start{record.spec, record.incarnation, job->driver, "", record.gpus};
  if (const NodeInfo* driver_node = tables.nodes().find(job->info.node))
    start.driver_node = driver_node->address;
  ControlRequest request{record.job, time_left(context_.now(), deadline), std::move(start)};
  context_.links.request(
      record.node, std::move(request),
      [this, actor, incarnation = record.incarnation](Result<ControlAnswer> started) {
        on_started(actor, incarnation, std::move(started));
      });
}

void ActorManager::on_started(ActorId actor, std::uint64_t incarnation,
                              Result<ControlAnswer> started) {
  const ActorRecord* record = context_.tables.actors().find(actor);
  if (!record || record->phase != ActorPhase::kStarting || record->incarnation != incarnation)
    return;
  if (!started.ok()) return on_start_failed(*record, started.status());
  if (auto* address = std::get_if<ActorAddress>(&*started))
    return on_alive(*record, std::move(*address));
  on_start_failed(*record, internal_error("node " + record->node.short_hex() +
                                          " answered a start without an address"));
}

void ActorManager::on_start_failed(const ActorRecord& record, const Status& why) {
  const ActorId actor = record.spec.actor;
  // It is asked again when its node is back (node_returned()), or the node is lost, and the actor
  // with it.
  if (why.code() == ErrorCode::kUnavailable && context_.tables.nodes().contains(record.node) &&
      !context_.links.is_connected(record.node))
    return;
  if (why.code() == ErrorCode::kDeadlineExceeded) stop(record, {}, "killed on request", false);
  const bool process_ended =
      why.code() == ErrorCode::kActorDied || why.code() == ErrorCode::kUnavailable;
  const bool killed = why.code() == ErrorCode::kCancelled &&
                      may_restart(context_.tables, record);  // and is to start again
  if (record.restarts > 0 && (process_ended || killed)) {
    incarnation_ended(actor, cause_of(why.message()));
  } else if (record.restarts == 0) {
    die(actor, cause_of(why.message()), why);  // its creator's error
  } else {
    ActorState state = record.state();
    state.phase = ActorPhase::kDead;
    state.death = cause_of("could not be started again: " + why.message());
    die(actor, state.death, death_status(state));
  }
  queue_.place_all();
}

void ActorManager::on_alive(const ActorRecord& record, ActorAddress address) {
  address.actor = record.spec.actor;
  address.incarnation = record.incarnation;
  address.caller_options = record.spec.caller_options;
  context_.commit(command::ActorAlive{address});
  waiters_.changed(address.actor);
  waiters_.alive(address);
  hooks_.alive(record);
}

// -- Ends

void ActorManager::serve(const HeadCall&, control::ActorExited& body, ControlAnswerer answer) {
  answer(ControlAnswer{});
  const ActorRecord* record = context_.tables.actors().find(body.actor);
  if (!record || !is_started(record->phase) || record->incarnation != body.incarnation) return;
  incarnation_ended(body.actor, body.cause);
  queue_.place_all();
}

void ActorManager::serve(const HeadCall& call, control::ActorsExited& body,
                         ControlAnswerer answer) {
  answer(ControlAnswer{});
  {
    DeathNotices::Together together(notices_);
    for (const auto& [actor, incarnation] : body.actors) {
      const ActorRecord* record = context_.tables.actors().find(actor);
      if (!record || !is_started(record->phase) || record->incarnation != incarnation) continue;
      if (record->node == call.from) incarnation_ended(actor, body.cause);
    }
  }
  queue_.place_all();
}

void ActorManager::serve(const HeadCall&, control::ParkActor& body, ControlAnswerer answer) {
  const ActorRecord* record = context_.tables.actors().find(body.actor);
  if (!record || !is_started(record->phase))
    return answer(not_found("no actor runs under the id " + body.actor.hex()));
  context_.commit(command::ActorParked{body.actor});
  context_.scheduler.release_actor(body.actor);
  answer(ControlAnswer{});
  queue_.place_all();
}

void ActorManager::stop(const ActorRecord& record, std::chrono::milliseconds grace,
                        std::string reason, bool drain) {
  control::StopActor stop{record.spec.actor, record.incarnation, grace, drain, std::move(reason)};
  context_.links.request(
      record.node, ControlRequest{record.job, grace + std::chrono::seconds(30), std::move(stop)},
      [](Result<ControlAnswer>) {});
}

void ActorManager::stop_torn(const ActorRecord& record, const std::string& text,
                             std::chrono::milliseconds grace) {
  std::string reason = "its placement group is placed again as a whole: " + text;
  if (may_restart(context_.tables, record)) return stop(record, grace, std::move(reason), true);
  const bool is_first_start = record.phase == ActorPhase::kStarting && record.restarts == 0;
  reason += is_first_start ? "; the actor was being built, and its creator may ask again"
                           : "; the actor has no restart left (ActorOptions::max_restarts)";
  stop(record, std::chrono::milliseconds(0), std::move(reason), false);
}

void ActorManager::end(ActorId actor, const std::string& reason) {
  const ActorRecord* record = context_.tables.actors().find(actor);
  if (!record || record->phase == ActorPhase::kDead) return;
  if (record->phase == ActorPhase::kPending)
    return die(actor, cause_of(reason), cancelled(describe(record->spec) + ": " + reason));
  context_.commit(command::ActorEnds{actor});
  stop(*record, kEndGrace, reason, false);
}

void ActorManager::end_owned(ActorId owner) {
  for (ActorId actor : context_.tables.actors().owned_by(owner))
    end(actor, "its owner, actor " + owner.short_hex() + ", ended");
}

void ActorManager::incarnation_ended(ActorId actor, const DeathCause& cause) {
  const ActorRecord& record = *context_.tables.actors().find(actor);
  if (may_restart(context_.tables, record)) return restart(actor, cause);
  ActorState state = record.state();
  state.phase = ActorPhase::kDead;
  state.death = cause;
  die(actor, cause, death_status(state));
}

void ActorManager::restart(ActorId actor, const DeathCause& cause) {
  const Deadline now = context_.now();
  const ActorRecord& record = *context_.tables.actors().find(actor);
  const bool moves = record.moving;
  const std::chrono::milliseconds delay = pace_.next_delay(actor, moves);
  context_.commit(command::ActorRestarts{actor, cause});
  context_.scheduler.release_actor(actor);
  if (moves)
    LOG(info, "{} moves to another node: {}", describe(record.spec), cause.text);
  else
    LOG(info, "{} is started again ({} of {}): {}", describe(record.spec),
        record.restarts - record.moves, record.spec.max_restarts, cause.text);
  waiters_.incarnation_ended(record);
  waiters_.changed(actor);
  end_owned(actor);
  // The place that was kept for it is not for others that look for one.
  if (moves && place(actor, Deadline::max())) return;
  queue_.add(actor, Deadline::max(), delay.count() > 0 ? now + delay : Deadline::min());
}

void ActorManager::die(ActorId actor, const DeathCause& cause, const Status& why) {
  const ActorRecord& record = *context_.tables.actors().find(actor);
  const bool was_pending = record.phase == ActorPhase::kPending;
  context_.commit(command::ActorDead{actor, cause});
  dead_.note_death();
  context_.scheduler.release_actor(actor);
  pace_.forget(actor);
  if (was_pending) queue_.remove(actor);
  waiters_.never_alive(actor, why);
  waiters_.incarnation_ended(record);
  waiters_.changed(actor);
  if (record.spec.outlives_job) hooks_.outliving_died(record.job);
  if (record.incarnation == 0) return;  // never started: only its creator can hold a handle
  notices_.announce(record);
  end_owned(actor);
}

// -- Nodes, and a restart of the head

void ActorManager::restored() {
  for (const auto& [id, record] : context_.tables.actors().all()) {
    if (record.phase == ActorPhase::kPending) {
      // A creator that waits for one that never ran asks again, with its own deadline.
      queue_.add(id, record.restarts > 0 ? Deadline::max()
                                         : context_.now() + context_.options.restored_wait);
    } else if (is_started(record.phase)) {
      context_.scheduler.restore_actor(record.spec, {record.node, record.gpus});
    }
  }
}

void ActorManager::node_returned(const control::RegisterNode& body) {
  const NodeId node = body.info.node;
  const ClusterTables& tables = context_.tables;
  const std::set<control::ActorInstance> running(body.actors.begin(), body.actors.end());
  std::set<control::ActorInstance> expected;
  std::vector<ActorId> stopping, torn, unanswered, missing;
  for (const ActorId& id : tables.actors().started_on(node)) {
    const ActorRecord& record = *tables.actors().find(id);
    expected.insert({id, record.incarnation});
    // Whether the node was ever asked, an earlier head has taken with it. The node knows an
    // incarnation that it has, or had.
    const GroupState* group =
        record.spec.bundle ? tables.groups().find(record.spec.bundle->group) : nullptr;
    if (group && !group->placed)
      torn.push_back(id);
    else if (record.ending)
      stopping.push_back(id);
    if (record.phase == ActorPhase::kStarting)
      unanswered.push_back(id);
    else if (!running.contains({id, record.incarnation}))
      missing.push_back(id);
  }
  for (const control::ActorInstance& actor : running) {
    if (expected.contains(actor)) continue;
    control::StopActor stop{actor.actor, actor.incarnation, std::chrono::milliseconds(0), false,
                            "the cluster goes on without it"};
    context_.links.request(node, ControlRequest{{}, std::chrono::seconds(30), std::move(stop)},
                           [](Result<ControlAnswer>) {});
  }
  for (ActorId actor : stopping)
    stop(*tables.actors().find(actor), std::chrono::seconds(1), "killed on request", true);
  for (ActorId actor : torn)
    stop_torn(*tables.actors().find(actor), "it had lost a node", kEndGrace);
  for (ActorId actor : unanswered)
    start(actor, context_.now() + tables.actors().find(actor)->spec.create_timeout);
  for (ActorId actor : missing) {
    const ActorRecord* record = tables.actors().find(actor);
    if (!record || record->node != node || record->phase != ActorPhase::kAlive)
      continue;  // its owner's end has ended it
    DeathCause cause = cause_of("it was gone when its node came back to the head");
    cause.pid = record->address.pid;
    incarnation_ended(actor, cause);
  }
}

void ActorManager::node_lost(NodeId node, const std::string& text, const std::set<GroupId>& torn) {
  const ClusterTables& tables = context_.tables;
  std::vector<std::pair<ActorId, std::int32_t>> lost;  // and their processes
  for (const ActorId& actor : tables.actors().started_on(node))
    lost.emplace_back(actor, tables.actors().find(actor)->address.pid);
  DeathNotices::Together together(notices_);
  for (const auto& [actor, pid] : lost) {
    // The end of one may have ended another, which it owned.
    const ActorRecord* record = tables.actors().find(actor);
    if (!record || !is_started(record->phase) || record->node != node) continue;
    DeathCause cause = cause_of(text);
    cause.pid = pid;
    const bool goes_with_gang = record->spec.bundle && torn.contains(record->spec.bundle->group);
    if (goes_with_gang && !may_restart(tables, *record))
      cause.text +=
          "; its placement group is placed again, but the actor has no restart left "
          "(ActorOptions::max_restarts)";
    incarnation_ended(actor, cause);
  }
}

}  // namespace runtime
