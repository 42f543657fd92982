// The head's part about actors: creation, names, owners, restarts, ends.
#include <algorithm>

#include "runtime/core/log.h"
#include "runtime/head/head.h"
#include "runtime/head/head_words.h"

namespace runtime {

using namespace head_words;

// -- Creation and names

std::string Head::name_space(const Call& call, const std::string& wanted) const {
  return wanted.empty() ? tables_.name_space(call.job) : wanted;
}

Status Head::complete(const Call& call, ActorSpec& spec) const {
  const bool named_none = spec.name_space.empty();
  spec.name_space = spec.name.empty() ? "" : name_space(call, spec.name_space);
  spec.saved_state.reset();
  spec.outlives_job = spec.detached;
  if (spec.detached) {
    spec.owner = {};
    const JobRecord* job = tables_.job(call.job);
    if (named_none && job && job->driver.name_space.empty()) {
      return invalid_argument(describe(spec) +
                              " is to be detached: give it or its driver a namespace, so that "
                              "other drivers can name it "
                              "(ActorOptions::name_space, RuntimeOptions::name_space)");
    }
  }
  if (spec.owner.is_none()) return {};
  const ActorRecord* owner = tables_.actor(spec.owner);
  if (!owner || !is_started(owner->phase) || owner->incarnation != spec.owner_incarnation ||
      owner->ending) {
    return cancelled(describe(spec) + " is not created: its owner, actor " +
                     spec.owner.short_hex() + ", has ended");
  }
  spec.outlives_job = owner->spec.outlives_job;
  return {};
}

Status Head::check_new_actor(const Call& call, const ActorSpec& spec) const {
  if (spec.actor.is_none()) return invalid_argument("an actor needs an id");
  if (spec.class_name.empty()) return invalid_argument("an actor needs a class");
  if (!tables_.job_runs(call.job) && !(spec.outlives_job && !spec.owner.is_none())) {
    return invalid_argument(describe(spec) + ": job " + call.job.short_hex() +
                            " is not running; register a driver first");
  }
  if (spec.detached && spec.name.empty()) {
    return invalid_argument(
        describe(spec) + " is to be detached: give it a name, so that others can find and end it");
  }
  const GroupState* group =
      spec.detached && spec.bundle ? tables_.group(spec.bundle->group) : nullptr;
  if (spec.detached && spec.bundle && !(group && group->spec.detached)) {
    return invalid_argument(describe(spec) +
                            " is to be detached: it cannot stand on a placement group that ends "
                            "with its job (GroupSpec::detached)");
  }
  if (!spec.name.empty()) {
    if (const ActorRecord* other = tables_.actor_named(spec.name_space, spec.name)) {
      return invalid_argument("the actor name '" + spec.name + "' is taken by " +
                              describe(other->spec) + " of job " + other->job.short_hex() +
                              " in namespace '" + spec.name_space + "'");
    }
  }
  if (pending_actors_.size() >= options_.pending_max) {
    return resource_exhausted(std::to_string(pending_actors_.size()) +
                              " actors wait for a place already");
  }
  return {};
}

void Head::on(const Call& call, control::CreateActor& body, ControlAnswerer answer) {
  ActorId id = body.spec.actor;
  // The same request again (its first answer was lost): join the first.
  if (const ActorRecord* known = tables_.actor(id); known && known->job == call.job) {
    for (PendingActor& pending : pending_actors_) {
      if (pending.actor == id) pending.deadline = std::max(pending.deadline, call.deadline);
    }
    return wait_for_address(id, call.deadline, std::move(answer));
  }
  if (tables_.actor(id))
    return answer(invalid_argument("actor " + id.short_hex() + " exists in another job"));
  if (Status status = complete(call, body.spec); !status.ok()) return answer(status);
  if (body.spec.get_if_exists) {
    if (body.spec.name.empty())
      return answer(
          invalid_argument(describe(body.spec) + ": get_if_exists needs a name to look for"));
    const ActorRecord* other = tables_.actor_named(body.spec.name_space, body.spec.name);
    if (other && other->spec.class_name == body.spec.class_name)
      return wait_for_address(other->spec.actor, call.deadline, std::move(answer));
  }
  if (Status status = check_new_actor(call, body.spec); !status.ok()) return answer(status);
  commit(command::AddActor{call.job, std::move(body.spec)});
  address_waiters_.add(id, call.deadline + kAnswerGrace, std::move(answer));
  if (!try_place_actor(id, call.deadline)) queue_actor(id, call.deadline);
}

bool Head::try_place_actor(ActorId actor, Deadline deadline) {
  const ActorRecord* record = tables_.actor(actor);
  if (!record || record->phase != ActorPhase::kPending) return true;  // it died waiting
  if (record->spec.bundle) {
    const GroupState* group = tables_.group(record->spec.bundle->group);
    if (group && !group->placed) {
      commit(command::ActorWaits{actor, "its placement group waits: " + group->pending_reason});
      return false;
    }
  }
  auto place = scheduler_->place_actor(record->spec);
  if (place.ok()) {
    commit(command::ActorPlaced{actor, *std::move(place), tables_.next_incarnation()});
    tell_actor_watchers(actor);
    start_actor(actor, record->restarts > 0 ? now_() + record->spec.create_timeout : deadline);
    return true;
  }
  if (place.status().code() == ErrorCode::kResourceExhausted) {
    commit(command::ActorWaits{actor, place.status().message()});
    return false;
  }
  actor_dead(actor, cause_of(place.status().message()), place.status());
  return true;
}

void Head::start_actor(ActorId actor, Deadline deadline) {
  const ActorRecord& record = *tables_.actor(actor);
  const JobRecord* job = tables_.job(record.job);
  CHECK(job !=
        nullptr);  // pending actors die with their job, and those that outlive it keep it known
  control::StartActor start{record.spec, record.incarnation, job->driver, "", record.gpus};
  auto driver_node = tables_.nodes().find(job->info.node);
  if (driver_node != tables_.nodes().end()) start.driver_node = driver_node->second.address;
  ControlRequest request{record.job, time_left(now_(), deadline), std::move(start)};
  links_.request(record.node, std::move(request),
                 [this, actor, incarnation = record.incarnation](Result<ControlAnswer> started) {
                   on_started(actor, incarnation, std::move(started));
                 });
}

void Head::on_started(ActorId actor, std::uint64_t incarnation, Result<ControlAnswer> started) {
  const ActorRecord* record = tables_.actor(actor);
  if (!record || record->phase != ActorPhase::kStarting || record->incarnation != incarnation)
    return;
  if (started.ok() && !std::holds_alternative<ActorAddress>(*started)) {
    started =
        internal_error("node " + record->node.short_hex() + " answered a start without an address");
  }
  if (!started.ok()) {
    const ErrorCode code = started.status().code();
    // It is asked again when its node is back (reconcile()), or the node is lost, and the actor
    // with it.
    if (code == ErrorCode::kUnavailable && tables_.nodes().contains(record->node) &&
        !links_.is_connected(record->node))
      return;
    if (code == ErrorCode::kDeadlineExceeded) stop_actor(*record);
    const bool process_ended = code == ErrorCode::kActorDied || code == ErrorCode::kUnavailable;
    const bool killed =
        code == ErrorCode::kCancelled && may_restart(*record);  // and is to start again
    if (record->restarts > 0 && (process_ended || killed))
      incarnation_ended(actor, cause_of(started.status().message()));
    else
      start_failed(*record, started.status());
    return place_pending();
  }
  ActorAddress address = std::get<ActorAddress>(*std::move(started));
  address.actor = actor;
  address.incarnation = incarnation;
  address.caller_options = record->spec.caller_options;
  commit(command::ActorAlive{address});
  tell_actor_watchers(actor);
  for (ControlAnswerer& answer : address_waiters_.take(actor)) answer(ControlAnswer{address});
  // Its gang may have a bundle on a node that is drained, and have waited for it.
  if (record->spec.bundle)
    advance_drains();
  else
    advance_drain(address.node);
}

void Head::start_failed(const ActorRecord& record, const Status& why) {
  if (record.restarts == 0)
    return actor_dead(record.spec.actor, cause_of(why.message()), why);  // its creator's error
  ActorState state = record.state();
  state.phase = ActorPhase::kDead;
  state.death = cause_of("could not be started again: " + why.message());
  actor_dead(record.spec.actor, state.death, death_status(state));
}

// -- Questions

void Head::wait_for_address(ActorId actor, Deadline deadline, ControlAnswerer answer) {
  const ActorRecord& record = *tables_.actor(actor);
  switch (record.phase) {
    case ActorPhase::kAlive: return answer(ControlAnswer{record.address});
    case ActorPhase::kDead: return answer(death_status(record.state()));
    default: return address_waiters_.add(actor, deadline, std::move(answer));
  }
}

void Head::on(const Call& call, control::ResolveActor& body, ControlAnswerer answer) {
  const std::string space = name_space(call, body.name_space);
  const ActorRecord* record =
      body.actor.is_none() ? tables_.actor_named(space, body.name) : tables_.actor(body.actor);
  if (!record) {
    std::string what = body.actor.is_none()
                           ? "actor is named '" + body.name + "' in namespace '" + space + "'"
                           : "actor has the id " + body.actor.hex();
    return answer(not_found("no " + what + " (a dead actor's name is free again)"));
  }
  wait_for_address(record->spec.actor, call.deadline, std::move(answer));
}

void Head::on(const Call& call, control::QueryActor& body, ControlAnswerer answer) {
  const ActorRecord* record = tables_.actor(body.actor);
  if (!record) return answer(not_found("no actor has the id " + body.actor.hex()));
  const bool other = body.incarnation != 0 && body.incarnation != record->incarnation;
  if (other || record->phase == ActorPhase::kDead || record->state().is_restarting())
    return answer(ControlAnswer{record->state()});
  Deadline until = std::min(call.deadline, now_() + options_.death_wait);
  end_waiters_.add(
      body.actor, until,
      [this, actor = body.actor, answer = std::move(answer)](const ActorRecord* ended) mutable {
        const ActorRecord* current = ended ? ended : tables_.actor(actor);
        if (current)
          answer(ControlAnswer{current->state()});
        else
          answer(not_found("no actor has the id " + actor.hex()));
      });
}

void Head::on(const Call& call, control::WatchActor& body, ControlAnswerer answer) {
  const ActorRecord* record = tables_.actor(body.actor);
  if (!record) return answer(not_found("no actor has the id " + body.actor.hex()));
  if (record->version != body.version) return answer(ControlAnswer{record->state()});
  actor_watchers_.add(body.actor, call.deadline, std::move(answer));
}

void Head::tell_actor_watchers(ActorId actor) {
  for (ControlAnswerer& answer : actor_watchers_.take(actor))
    answer(ControlAnswer{tables_.actor(actor)->state()});
}

void Head::on(const Call&, control::SaveState& body, ControlAnswerer answer) {
  const ActorRecord* record = tables_.actor(body.actor);
  if (!record || !is_started(record->phase) || record->incarnation != body.incarnation) {
    return answer(cancelled("actor " + body.actor.short_hex() +
                            " has been replaced: its state is no longer saved"));
  }
  if (body.state.size() > options_.state_bytes_max) {
    return answer(resource_exhausted("the state of " + describe(record->spec) + " has " +
                                     std::to_string(body.state.size()) + " bytes; at most " +
                                     std::to_string(options_.state_bytes_max) +
                                     " are kept (write more to a file, and save its name)"));
  }
  commit(command::ActorStateSaved{body.actor, std::move(body.state)});
  answer(ControlAnswer{});
}

// -- Ends

void Head::on(const Call& call, control::KillActor& body, ControlAnswerer answer) {
  const ActorRecord* record = tables_.actor(body.actor);
  if (!record) return answer(not_found("no actor has the id " + body.actor.hex()));
  if (record->phase == ActorPhase::kDead) return answer(ControlAnswer{});
  if (call.has_begun && call.about != record->incarnation) return answer(ControlAnswer{});
  if (!body.may_restart) commit(command::ActorEnds{body.actor});
  if (record->phase == ActorPhase::kPending) {
    if (body.may_restart && record->restarts > 0)
      return answer(ControlAnswer{});  // as good as killed already
    actor_dead(body.actor, cause_of("killed before it had a place"),
               cancelled(describe(record->spec) + " was killed before it had a place"));
    return answer(ControlAnswer{});
  }
  requests_.note_begun(call, record->incarnation);
  end_waiters_.add(
      body.actor, call.deadline,
      [actor = body.actor, answer = std::move(answer)](const ActorRecord* ended) mutable {
        if (ended)
          answer(ControlAnswer{});
        else
          answer(deadline_exceeded("actor " + actor.short_hex() + " has not ended yet"));
      });
  stop_actor(*record);
}

void Head::on(const Call& call, control::TerminateActor& body, ControlAnswerer answer) {
  const ActorRecord* record = tables_.actor(body.actor);
  if (!record) return answer(not_found("no actor has the id " + body.actor.hex()));
  if (call.has_begun && call.about != record->incarnation) return answer(ControlAnswer{});
  if (record->phase == ActorPhase::kDead && body.restart && !call.has_begun)
    return answer(actor_died(describe(record->spec) + " cannot be started again: it has ended"));
  if (record->phase == ActorPhase::kDead) return answer(ControlAnswer{});
  if (record->phase != ActorPhase::kAlive) {           // no calls wait at it yet
    if (body.restart) return answer(ControlAnswer{});  // as good as started again
    control::KillActor kill{body.actor, false};
    return on(call, kill, std::move(answer));
  }
  if (body.restart && !may_restart(*record)) {
    return answer(invalid_argument(describe(record->spec) +
                                   " cannot be started again: it has used " +
                                   std::to_string(record->restarts - record->moves) + " of " +
                                   std::to_string(record->spec.max_restarts) +
                                   " restarts, or is being ended (ActorOptions::max_restarts)"));
  }
  if (!body.restart) commit(command::ActorEnds{body.actor});
  requests_.note_begun(call, record->incarnation);
  end_waiters_.add(
      body.actor, call.deadline + kEndGrace,
      [actor = body.actor, answer = std::move(answer)](const ActorRecord* ended) mutable {
        if (ended)
          answer(ControlAnswer{});
        else
          answer(deadline_exceeded("actor " + actor.short_hex() + " has not ended yet"));
      });
  stop_actor(*record, time_left(now_(), call.deadline),
             body.restart ? "restarted on request" : "terminated", true);
}

void Head::on(const Call&, control::ParkActor& body, ControlAnswerer answer) {
  const ActorRecord* record = tables_.actor(body.actor);
  if (!record || !is_started(record->phase))
    return answer(not_found("no actor runs under the id " + body.actor.hex()));
  commit(command::ActorParked{body.actor});
  scheduler_->release_actor(body.actor);
  answer(ControlAnswer{});
  place_pending();
}

void Head::stop_actor(const ActorRecord& record, std::chrono::milliseconds grace,
                      std::string reason, bool drain) {
  control::StopActor stop{record.spec.actor, record.incarnation, grace, drain, std::move(reason)};
  links_.request(record.node,
                 ControlRequest{record.job, grace + std::chrono::seconds(30), std::move(stop)},
                 [](Result<ControlAnswer>) {});
}

void Head::end_actor(ActorId actor, const std::string& reason) {
  const ActorRecord* record = tables_.actor(actor);
  if (!record || record->phase == ActorPhase::kDead) return;
  if (record->phase == ActorPhase::kPending)
    return actor_dead(actor, cause_of(reason), cancelled(describe(record->spec) + ": " + reason));
  commit(command::ActorEnds{actor});
  stop_actor(*record, kEndGrace, reason);
}

void Head::end_owned(ActorId owner) {
  for (ActorId actor : tables_.owned_by(owner))
    end_actor(actor, "its owner, actor " + owner.short_hex() + ", ended");
}

void Head::on(const Call&, control::ActorExited& body, ControlAnswerer answer) {
  answer(ControlAnswer{});
  const ActorRecord* record = tables_.actor(body.actor);
  if (!record || !is_started(record->phase) || record->incarnation != body.incarnation) return;
  incarnation_ended(body.actor, body.cause);
  place_pending();
}

/// Gathers the deaths of its scope, so that a thousand of them are one event for every node.
class Head::DeathNotice {
 public:
  explicit DeathNotice(Head& head) : head_(head), outer_(std::exchange(head.death_notice_, this)) {}
  DeathNotice(const DeathNotice&) = delete;
  DeathNotice& operator=(const DeathNotice&) = delete;
  ~DeathNotice() {
    head_.death_notice_ = outer_;
    for (auto& [job, actors] : dead_) {
      const ControlEvent event = control::ActorsDied{job, std::move(actors)};
      for (const auto& [node, info] : head_.tables_.nodes()) head_.links_.event(node, event);
    }
  }
  void add(const ActorRecord& record) { dead_[record.job].push_back(record.spec.actor); }

 private:
  Head& head_;
  DeathNotice* outer_;
  std::map<JobId, std::vector<ActorId>> dead_;
};

void Head::announce_death(const ActorRecord& record) {
  if (death_notice_) return death_notice_->add(record);
  DeathNotice notice(*this);
  notice.add(record);
}

void Head::on(const Call& call, control::ActorsExited& body, ControlAnswerer answer) {
  answer(ControlAnswer{});
  {
    DeathNotice notice(*this);
    for (const auto& [actor, incarnation] : body.actors) {
      const ActorRecord* record = tables_.actor(actor);
      if (!record || !is_started(record->phase) || record->incarnation != incarnation) continue;
      if (record->node == call.from) incarnation_ended(actor, body.cause);
    }
  }
  place_pending();
}

void Head::node_lost(NodeId node, const std::string& why) {
  auto found = tables_.nodes().find(node);
  if (found == tables_.nodes().end()) return;
  std::string text = "node " + node.short_hex() + " (" + found->second.address + ") ";
  if (auto drain = drains_.find(node); drain != drains_.end()) {
    text += "was drained (" + found->second.drain->reason + ") and has left" +
            (drain->second.told ? "" : " before its deadline: " + why);
    mark_moving(node);
    drains_.erase(drain);
  } else {
    text += "is gone: " + why;
  }
  LOG(warn, "{}", text);
  scheduler_->remove_node(node);
  commit(command::RemoveNode{node, text});
  const std::set<GroupId> torn = tear_groups(node, text);
  std::vector<std::pair<ActorId, std::int32_t>> lost;  // and their processes
  for (const ActorId& actor : tables_.started_on(node))
    lost.emplace_back(actor, tables_.actor(actor)->address.pid);
  {
    DeathNotice notice(*this);
    for (const auto& [actor, pid] : lost) {
      // The end of one may have ended another, which it owned.
      const ActorRecord* record = tables_.actor(actor);
      if (!record || !is_started(record->phase) || record->node != node) continue;
      DeathCause cause = cause_of(text);
      cause.pid = pid;
      const bool goes_with_gang = record->spec.bundle && torn.contains(record->spec.bundle->group);
      if (goes_with_gang && !may_restart(*record))
        cause.text +=
            "; its placement group is placed anew, but the actor has no restart left "
            "(ActorOptions::max_restarts)";
      incarnation_ended(actor, cause);
    }
  }
  std::vector<JobId> jobs;
  for (const auto& [id, record] : tables_.jobs()) {
    if (record.info.running && record.info.node == node) jobs.push_back(id);
  }
  for (JobId job : jobs) end_job({job, JobOutcome::kFailed, cause_of(text), unix_milliseconds()});
  tell_node_watchers();
  place_pending();
}

bool Head::may_restart(const ActorRecord& record) const {
  if (record.ending || !(tables_.job_runs(record.job) || record.spec.outlives_job)) return false;
  if (record.phase == ActorPhase::kStarting && record.restarts == 0)
    return false;  // its creator is told instead
  if (record.moving) return record.spec.max_restarts != 0;
  return record.spec.max_restarts < 0 ||
         record.restarts - record.moves < static_cast<std::uint32_t>(record.spec.max_restarts);
}

void Head::incarnation_ended(ActorId actor, const DeathCause& cause) {
  const ActorRecord& record = *tables_.actor(actor);
  if (may_restart(record)) return restart(actor, cause);
  ActorState state = record.state();
  state.phase = ActorPhase::kDead;
  state.death = cause;
  actor_dead(actor, cause, death_status(state));
}

void Head::restart(ActorId actor, const DeathCause& cause) {
  const Deadline now = now_();
  RestartPace& pace =
      restart_paces_.try_emplace(actor, RestartPace{Deadline::min(), 0}).first->second;
  const bool first = pace.placed == Deadline::min();
  const bool moves = tables_.actor(actor)->moving;  // no fault of its own
  pace.short_lived =
      first || moves || now - pace.placed >= options_.restart_calm ? 0 : pace.short_lived + 1;
  std::chrono::milliseconds delay{0};
  if (pace.short_lived > 0) {
    delay = options_.restart_delay_first * (1u << std::min(pace.short_lived - 1, 20u));
    delay = std::min(delay, options_.restart_delay_max);
  }
  pace.placed = now + delay;
  commit(command::ActorRestarts{actor, cause});
  scheduler_->release_actor(actor);
  const ActorRecord* record = tables_.actor(actor);
  if (moves)
    LOG(info, "{} moves to another node: {}", describe(record->spec), cause.text);
  else
    LOG(info, "{} is started again ({} of {}): {}", describe(record->spec),
        record->restarts - record->moves, record->spec.max_restarts, cause.text);
  for (EndAnswerer& answer : end_waiters_.take(actor)) answer(record);
  tell_actor_watchers(actor);
  end_owned(actor);
  // The place that was kept for it is its own before anybody else looks for one.
  if (moves && try_place_actor(actor, Deadline::max())) return;
  queue_actor(actor, Deadline::max(), delay.count() > 0 ? now + delay : Deadline::min());
}

void Head::actor_dead(ActorId actor, const DeathCause& cause, const Status& why) {
  const bool was_pending = tables_.actor(actor)->phase == ActorPhase::kPending;
  commit(command::ActorDead{actor, cause});
  deaths_.push_back(now_());
  scheduler_->release_actor(actor);
  restart_paces_.erase(actor);
  if (was_pending)
    std::erase_if(pending_actors_,
                  [&](const PendingActor& pending) { return pending.actor == actor; });
  const ActorRecord* record = tables_.actor(actor);
  for (ControlAnswerer& answer : address_waiters_.take(actor)) answer(why);
  for (EndAnswerer& answer : end_waiters_.take(actor)) answer(record);
  tell_actor_watchers(actor);
  if (record->spec.outlives_job) published_.drop_private_names(record->job);
  if (record->spec.outlives_job && !tables_.job_serves(record->job)) tell_of_end(record->job);
  if (record->incarnation == 0) return;  // never started: nobody can hold a handle but its creator
  announce_death(*record);
  end_owned(actor);
}

void Head::forget_dead() {
  const std::size_t dead = tables_.dead_actors();
  const Deadline before = now_() - options_.dead_kept_for;
  std::size_t count = 0;
  while (dead - count > options_.dead_kept) {
    // A head that was restarted does not know when those from before died.
    const bool is_dated = deaths_.size() >= dead - count;
    if (is_dated && deaths_.front() > before && dead - count <= options_.dead_kept_max) break;
    if (is_dated) deaths_.pop_front();
    ++count;
  }
  if (count > 0) commit(command::ForgetDead{count});
}

}  // namespace runtime
