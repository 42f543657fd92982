#include "runtime/node/head.h"

#include <algorithm>
#include <charconv>

#include "runtime/core/log.h"

namespace runtime {

namespace {

// A node answers a start at its deadline; whoever waits for that hears the node's reason if the head waits a little longer.
constexpr auto kAnswerGrace = std::chrono::milliseconds(250);

std::chrono::milliseconds time_left(Deadline now, Deadline deadline) {
  return std::max(std::chrono::milliseconds(1), std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now));
}

std::string describe(const ActorSpec& spec) {
  return "actor " + spec.class_name + " " + spec.actor.short_hex();
}

}  // namespace

Head::Head(ClusterId cluster, std::unique_ptr<Scheduler> scheduler, HeadLinks& links, std::function<Deadline()> now,
           HeadOptions options)
    : cluster_(cluster), scheduler_(std::move(scheduler)), links_(links), now_(std::move(now)), options_(options) {}

// The journal's place: a command is applied once it is recorded.
void Head::commit(const HeadCommand& command) { tables_.apply(command); }

void Head::handle(NodeId from, ControlRequest request, ControlAnswerer answer) {
  Call call{from, request.job, now_() + request.timeout};
  bool known = tables_.nodes().contains(from) || std::holds_alternative<control::RegisterNode>(request.body);
  if (!known) return answer(unavailable("node " + from.short_hex() + " is not in the cluster (any more)"));
  std::visit([&](auto& body) { on(call, body, std::move(answer)); }, request.body);
}

template <class Other>
void Head::on(const Call& call, Other&, ControlAnswerer answer) {
  answer(unimplemented("node " + call.from.short_hex() + " sent the head a request that is not the head's to serve"));
}

void Head::on(const Call&, control::Heartbeat&, ControlAnswerer answer) { answer(ControlAnswer{}); }

void Head::on(const Call&, control::QueryCluster&, ControlAnswerer answer) { answer(ControlAnswer{cluster_state()}); }

// -- Nodes

void Head::on(const Call& call, control::RegisterNode& body, ControlAnswerer answer) {
  if (body.info.node != call.from) return answer(invalid_argument("a node registers itself only"));
  if (Status status = scheduler_->add_node(body.info); !status.ok()) return answer(status);
  body.info.alive = true;
  commit(command::AddNode{body.info});
  LOG(info, "node {} at {} joined", body.info.node.short_hex(), body.info.address);
  answer(ControlAnswer{});
  place_pending();
}

void Head::node_lost(NodeId node, const std::string& why) {
  auto found = tables_.nodes().find(node);
  if (found == tables_.nodes().end()) return;
  std::string text = "node " + node.short_hex() + " (" + found->second.address + ") is gone: " + why;
  LOG(warn, "{}", text);
  scheduler_->remove_node(node);
  commit(command::RemoveNode{node});
  std::vector<ActorRecord> lost;
  for (const auto& [id, record] : tables_.actors()) {
    if (record.node == node && record.phase != ActorPhase::kPending && record.phase != ActorPhase::kDead) lost.push_back(record);
  }
  for (const ActorRecord& record : lost) {
    DeathCause cause;
    cause.text = text;
    cause.pid = record.address.pid;
    actor_dead(record.spec.actor, cause, actor_died(describe(record.spec) + " died: " + text));
  }
  std::vector<JobId> jobs;
  for (const auto& [id, record] : tables_.jobs()) {
    if (record.info.running && record.info.node == node) jobs.push_back(id);
  }
  for (JobId job : jobs) end_job(job);
  place_pending();
}

// -- Jobs

void Head::on(const Call& call, control::StartJob& body, ControlAnswerer answer) {
  if (body.info.job.is_none()) return answer(invalid_argument("a job needs an id"));
  const JobRecord* known = tables_.job(body.info.job);
  if (known && known->info.running && known->info.node != call.from) {
    return answer(invalid_argument("job " + body.info.job.short_hex() + " runs on another node already"));
  }
  body.info.node = call.from;
  body.info.running = true;
  commit(command::StartJob{body.info, body.driver});
  answer(ControlAnswer{body.info.job});
}

void Head::on(const Call& call, control::EndJob& body, ControlAnswerer answer) {
  end_job(body.job);
  answer(ControlAnswer{});
}

void Head::end_job(JobId job) {
  if (!tables_.job_runs(job)) return;
  commit(command::EndJob{job});
  for (const auto& [node, info] : tables_.nodes()) {
    ControlRequest request{job, std::chrono::seconds(30), control::EndJob{job}};
    links_.request(node, std::move(request), [](Result<ControlAnswer>) {});
  }
  std::vector<ActorId> unplaced;
  for (const auto& [id, record] : tables_.actors()) {
    if (record.job == job && record.phase == ActorPhase::kPending) unplaced.push_back(id);
  }
  for (ActorId id : unplaced) {
    DeathCause cause;
    cause.text = "its job ended";
    actor_dead(id, cause, cancelled("job " + job.short_hex() + " ended"));
  }
  std::vector<GroupId> groups;
  for (const auto& [id, group] : tables_.groups()) {
    if (group.job == job) groups.push_back(id);
  }
  for (GroupId id : groups) drop_group(id, cancelled("job " + job.short_hex() + " ended"));
  place_pending();
}

// -- Actors

Status Head::check_new_actor(const Call& call, const ActorSpec& spec) const {
  if (spec.actor.is_none()) return invalid_argument("an actor needs an id");
  if (spec.class_name.empty()) return invalid_argument("an actor needs a class");
  if (!tables_.job_runs(call.job)) {
    return invalid_argument(describe(spec) + ": job " + call.job.short_hex() + " is not running; register a driver first");
  }
  if (!spec.name.empty()) {
    if (const ActorRecord* other = tables_.actor_named(spec.name)) {
      return invalid_argument("the actor name '" + spec.name + "' is taken by " + describe(other->spec) + " of job " +
                              other->job.short_hex());
    }
  }
  if (pending_actors_.size() >= options_.pending_max) {
    return resource_exhausted(std::to_string(pending_actors_.size()) + " actors wait for a place already");
  }
  return {};
}

void Head::on(const Call& call, control::CreateActor& body, ControlAnswerer answer) {
  ActorId id = body.spec.actor;
  // The same request again (its first answer was lost): join the first.
  if (const ActorRecord* known = tables_.actor(id); known && known->job == call.job) {
    return wait_for_address(id, call.deadline, std::move(answer));
  }
  if (tables_.actor(id)) return answer(invalid_argument("actor " + id.short_hex() + " exists in another job"));
  if (Status status = check_new_actor(call, body.spec); !status.ok()) return answer(status);
  commit(command::AddActor{call.job, std::move(body.spec)});
  address_waiters_.add(id, call.deadline + kAnswerGrace, std::move(answer));
  if (!try_place_actor(id, call.deadline)) pending_actors_.push_back({id, call.deadline});
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
  auto node = scheduler_->place_actor(record->spec);
  if (node.ok()) {
    commit(command::ActorPlaced{actor, *node, tables_.next_incarnation()});
    start_actor(actor, deadline);
    return true;
  }
  if (node.status().code() == ErrorCode::kResourceExhausted) {
    commit(command::ActorWaits{actor, node.status().message()});
    return false;
  }
  DeathCause cause;
  cause.text = node.status().message();
  actor_dead(actor, cause, node.status());
  return true;
}

void Head::start_actor(ActorId actor, Deadline deadline) {
  const ActorRecord& record = *tables_.actor(actor);
  const JobRecord* job = tables_.job(record.job);
  CHECK(job != nullptr);  // pending actors die with their job
  control::StartActor start{record.spec, record.incarnation, job->driver, ""};
  auto driver_node = tables_.nodes().find(job->info.node);
  if (driver_node != tables_.nodes().end()) start.driver_node = driver_node->second.address;
  ControlRequest request{record.job, time_left(now_(), deadline), std::move(start)};
  links_.request(record.node, std::move(request), [this, actor, incarnation = record.incarnation](Result<ControlAnswer> started) {
    on_started(actor, incarnation, std::move(started));
  });
}

void Head::on_started(ActorId actor, std::uint64_t incarnation, Result<ControlAnswer> started) {
  const ActorRecord* record = tables_.actor(actor);
  if (!record || record->phase != ActorPhase::kStarting || record->incarnation != incarnation) return;
  if (started.ok() && !std::holds_alternative<ActorAddress>(*started)) {
    started = internal_error("node " + record->node.short_hex() + " answered a start without an address");
  }
  if (!started.ok()) {
    if (started.status().code() == ErrorCode::kDeadlineExceeded) stop_actor(*record);
    DeathCause cause;
    cause.text = started.status().message();
    actor_dead(actor, cause, started.status());
    return place_pending();
  }
  ActorAddress address = std::get<ActorAddress>(*std::move(started));
  address.actor = actor;
  address.incarnation = incarnation;
  commit(command::ActorAlive{address});
  for (ControlAnswerer& answer : address_waiters_.take(actor)) answer(ControlAnswer{address});
}

void Head::wait_for_address(ActorId actor, Deadline deadline, ControlAnswerer answer) {
  const ActorRecord& record = *tables_.actor(actor);
  switch (record.phase) {
    case ActorPhase::kAlive: return answer(ControlAnswer{record.address});
    case ActorPhase::kDead: return answer(death_status(record.state()));
    default: return address_waiters_.add(actor, deadline, std::move(answer));
  }
}

void Head::on(const Call& call, control::ResolveActor& body, ControlAnswerer answer) {
  const ActorRecord* record = body.actor.is_none() ? tables_.actor_named(body.name) : tables_.actor(body.actor);
  if (!record) {
    std::string what = body.actor.is_none() ? "actor is named '" + body.name + "'" : "actor has the id " + body.actor.hex();
    return answer(not_found("no " + what + " (a dead actor's name is free again)"));
  }
  wait_for_address(record->spec.actor, call.deadline, std::move(answer));
}

void Head::on(const Call& call, control::QueryActor& body, ControlAnswerer answer) {
  const ActorRecord* record = tables_.actor(body.actor);
  if (!record) return answer(not_found("no actor has the id " + body.actor.hex()));
  if (record->phase == ActorPhase::kDead) return answer(ControlAnswer{record->state()});
  Deadline until = std::min(call.deadline, now_() + options_.death_wait);
  death_waiters_.add(body.actor, until, [this, actor = body.actor, answer = std::move(answer)](const ActorRecord* dead) mutable {
    const ActorRecord* current = dead ? dead : tables_.actor(actor);
    if (current) answer(ControlAnswer{current->state()});
    else answer(not_found("no actor has the id " + actor.hex()));
  });
}

void Head::on(const Call& call, control::KillActor& body, ControlAnswerer answer) {
  const ActorRecord* record = tables_.actor(body.actor);
  if (!record) return answer(not_found("no actor has the id " + body.actor.hex()));
  if (record->phase == ActorPhase::kDead) return answer(ControlAnswer{});
  if (record->phase == ActorPhase::kPending) {
    DeathCause cause;
    cause.text = "killed before it had a place";
    actor_dead(body.actor, cause, cancelled(describe(record->spec) + " was killed before it had a place"));
    return answer(ControlAnswer{});
  }
  death_waiters_.add(body.actor, call.deadline, [actor = body.actor, answer = std::move(answer)](const ActorRecord* dead) mutable {
    if (dead) answer(ControlAnswer{});
    else answer(deadline_exceeded("actor " + actor.short_hex() + " has not ended yet"));
  });
  stop_actor(*record);
}

void Head::stop_actor(const ActorRecord& record) {
  ControlRequest request{record.job, std::chrono::seconds(30), control::StopActor{record.spec.actor, record.incarnation}};
  links_.request(record.node, std::move(request), [](Result<ControlAnswer>) {});
}

void Head::on(const Call& call, control::ActorExited& body, ControlAnswerer answer) {
  answer(ControlAnswer{});
  const ActorRecord* record = tables_.actor(body.actor);
  if (!record || record->phase == ActorPhase::kDead || record->incarnation != body.incarnation) return;
  ActorState state = record->state();
  state.death = body.cause;
  actor_dead(body.actor, body.cause, death_status(state));
  place_pending();
}

void Head::actor_dead(ActorId actor, const DeathCause& cause, const Status& why) {
  commit(command::ActorDead{actor, cause});
  scheduler_->release_actor(actor);
  std::erase_if(pending_actors_, [&](const PendingActor& pending) { return pending.actor == actor; });
  const ActorRecord* record = tables_.actor(actor);
  for (ControlAnswerer& answer : address_waiters_.take(actor)) answer(why);
  for (DeathAnswerer& answer : death_waiters_.take(actor)) answer(record);
  if (record->incarnation == 0) return;  // never started: nobody can hold a handle but its creator
  ControlEvent event = control::ActorDied{record->state()};
  for (const auto& [node, info] : tables_.nodes()) links_.event(node, event);
}

// -- Placement groups

void Head::on(const Call& call, control::CreateGroup& body, ControlAnswerer answer) {
  GroupId id = body.spec.group;
  if (id.is_none()) return answer(invalid_argument("a placement group needs an id"));
  if (!tables_.job_runs(call.job)) return answer(invalid_argument("job " + call.job.short_hex() + " is not running"));
  if (const GroupState* known = tables_.group(id)) {
    if (known->placed) return answer(ControlAnswer{*known});
    return group_waiters_.add(id, call.deadline, std::move(answer));
  }
  if (pending_groups_.size() >= options_.pending_max) {
    return answer(resource_exhausted(std::to_string(pending_groups_.size()) + " placement groups wait already"));
  }
  commit(command::AddGroup{call.job, std::move(body.spec)});
  group_waiters_.add(id, call.deadline + kAnswerGrace, std::move(answer));
  if (!try_place_group(id)) pending_groups_.push_back({id, call.deadline});
}

bool Head::try_place_group(GroupId id) {
  const GroupState* group = tables_.group(id);
  if (!group || group->placed) return true;
  auto nodes = scheduler_->place_group(group->spec);
  if (nodes.ok()) {
    commit(command::GroupPlaced{id, *nodes});
    for (ControlAnswerer& answer : group_waiters_.take(id)) answer(ControlAnswer{*tables_.group(id)});
    return true;
  }
  if (nodes.status().code() == ErrorCode::kResourceExhausted) {
    commit(command::GroupWaits{id, nodes.status().message()});
    return false;
  }
  drop_group(id, nodes.status());
  return true;
}

void Head::drop_group(GroupId id, const Status& why) {
  std::vector<ActorId> waiting;
  for (const auto& [actor, record] : tables_.actors()) {
    if (!record.spec.bundle || record.spec.bundle->group != id || record.phase == ActorPhase::kDead) continue;
    if (record.phase == ActorPhase::kPending) waiting.push_back(actor);
    else stop_actor(record);  // what it stands on is given to others
  }
  scheduler_->remove_group(id);
  commit(command::RemoveGroup{id});
  std::erase_if(pending_groups_, [&](const PendingGroup& pending) { return pending.group == id; });
  for (ControlAnswerer& answer : group_waiters_.take(id)) answer(why);
  for (ActorId actor : waiting) {
    DeathCause cause;
    cause.text = "its placement group is gone: " + why.message();
    actor_dead(actor, cause, Status(why.code(), cause.text));
  }
}

void Head::on(const Call& call, control::RemoveGroup& body, ControlAnswerer answer) {
  if (!tables_.group(body.group)) return answer(not_found("no placement group has the id " + body.group.hex()));
  drop_group(body.group, cancelled("placement group " + body.group.short_hex() + " was removed"));
  answer(ControlAnswer{});
  place_pending();
}

/// Groups first: an actor placed before them could take what a whole gang waits for.
void Head::place_pending() {
  std::vector<PendingGroup> groups = std::exchange(pending_groups_, {});
  for (const PendingGroup& pending : groups) {
    if (!try_place_group(pending.group)) pending_groups_.push_back(pending);
  }
  std::vector<PendingActor> actors = std::exchange(pending_actors_, {});
  for (const PendingActor& pending : actors) {
    if (!try_place_actor(pending.actor, pending.deadline)) pending_actors_.push_back(pending);
  }
}

// -- Key-value pairs

Status Head::put_value(JobId job, const std::string& key, std::string value) {
  if (!job.is_none() && !tables_.job_runs(job)) return cancelled("job " + job.short_hex() + " has ended");
  if (key.empty() || key.size() > options_.key_bytes_max) {
    return invalid_argument("a key has 1 to " + std::to_string(options_.key_bytes_max) + " bytes, not " + std::to_string(key.size()));
  }
  if (value.size() > options_.value_bytes_max) {
    return invalid_argument("the value of '" + key + "' has " + std::to_string(value.size()) + " bytes; at most " +
                            std::to_string(options_.value_bytes_max) + " fit (put larger data into an object)");
  }
  if (!tables_.value(job, key) && tables_.keys(job) >= options_.keys_per_job_max) {
    return resource_exhausted("job " + job.short_hex() + " has " + std::to_string(tables_.keys(job)) + " keys, the most there may be");
  }
  commit(command::PutKey{job, key, std::move(value)});
  for (ControlAnswerer& waiting : key_waiters_.take({job, key})) waiting(ControlAnswer{*tables_.value(job, key)});
  return {};
}

void Head::on(const Call& call, control::KvPut& body, ControlAnswerer answer) {
  Status status = put_value(call.job, body.key, std::move(body.value));
  if (status.ok()) answer(ControlAnswer{});
  else answer(status);
}

void Head::on(const Call& call, control::KvGet& body, ControlAnswerer answer) {
  if (const std::string* value = tables_.value(call.job, body.key)) return answer(ControlAnswer{*value});
  if (!body.wait) return answer(not_found("no key '" + body.key + "'"));
  key_waiters_.add({call.job, body.key}, call.deadline, std::move(answer));
}

void Head::on(const Call& call, control::KvAdd& body, ControlAnswerer answer) {
  std::int64_t number = 0;
  if (const std::string* value = tables_.value(call.job, body.key)) {
    auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
    if (error != std::errc() || end != value->data() + value->size()) {
      return answer(invalid_argument("the value of '" + body.key + "' is no number"));
    }
  }
  std::int64_t sum;
  if (__builtin_add_overflow(number, body.amount, &sum)) return answer(invalid_argument("adding to '" + body.key + "' overflows"));
  Status status = put_value(call.job, body.key, std::to_string(sum));
  if (status.ok()) answer(ControlAnswer{sum});
  else answer(status);
}

void Head::on(const Call& call, control::KvDelete& body, ControlAnswerer answer) {
  bool was_there = tables_.value(call.job, body.key) != nullptr;
  if (was_there) commit(command::DeleteKey{call.job, body.key});
  answer(ControlAnswer{std::int64_t{was_there}});
}

// -- Events, time, questions

void Head::handle_event(NodeId from, const ControlEvent& event) {
  const auto* lines = std::get_if<LogLines>(&event);
  if (!lines) return;
  const JobRecord* job = tables_.job(lines->job);
  if (job && job->info.running && job->info.node != from) links_.event(job->info.node, event);
}

void Head::tick() {
  Deadline now = now_();
  for (std::size_t i = 0; i < pending_groups_.size();) {
    if (pending_groups_[i].deadline > now) {
      ++i;
      continue;
    }
    GroupId id = pending_groups_[i].group;  // drop_group() takes it out of the list
    drop_group(id, resource_exhausted(tables_.group(id)->pending_reason));
  }
  for (std::size_t i = 0; i < pending_actors_.size();) {
    if (pending_actors_[i].deadline > now) {
      ++i;
      continue;
    }
    ActorId id = pending_actors_[i].actor;  // actor_dead() takes it out of the list
    Status why = resource_exhausted(tables_.actor(id)->pending_reason);
    DeathCause cause;
    cause.text = "not placed before its deadline: " + why.message();
    actor_dead(id, cause, why);
  }
  for (auto& [actor, answer] : address_waiters_.expire(now)) {
    const ActorRecord* record = tables_.actor(actor);
    std::string phase = record ? std::string(to_string(record->phase)) : "gone";
    answer(deadline_exceeded("actor " + actor.short_hex() + " is still " + phase +
                             (record && !record->pending_reason.empty() ? ": " + record->pending_reason : "")));
  }
  for (auto& [actor, answer] : death_waiters_.expire(now)) answer(nullptr);
  for (auto& [group, answer] : group_waiters_.expire(now)) {
    answer(deadline_exceeded("placement group " + group.short_hex() + " is still not placed"));
  }
  for (auto& [key, answer] : key_waiters_.expire(now)) answer(deadline_exceeded("nobody has set the key '" + key.second + "'"));
}

Deadline Head::next_tick() const {
  Deadline next = std::min({address_waiters_.earliest(), death_waiters_.earliest(), group_waiters_.earliest(), key_waiters_.earliest()});
  for (const PendingActor& pending : pending_actors_) next = std::min(next, pending.deadline);
  for (const PendingGroup& pending : pending_groups_) next = std::min(next, pending.deadline);
  return next;
}

ClusterState Head::cluster_state() const {
  ClusterState state;
  state.cluster = cluster_;
  for (const auto& [id, info] : tables_.nodes()) {
    state.nodes.push_back(info);
    state.nodes.back().available = scheduler_->available(id);
  }
  for (const auto& [id, record] : tables_.actors()) state.actors.push_back(record.state());
  for (const auto& [id, group] : tables_.groups()) state.groups.push_back(group);
  for (const auto& [id, record] : tables_.jobs()) state.jobs.push_back(record.info);
  return state;
}

}  // namespace runtime
