#include "runtime/head/head.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "runtime/core/log.h"

namespace runtime {

namespace {

// Whoever waits for something hears its reason for failing at its deadline if the head waits a little longer.
constexpr auto kAnswerGrace = std::chrono::milliseconds(250);
// The dead are forgotten by the handful.
constexpr auto kForgetTogether = std::chrono::milliseconds(250);

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
  const bool known = tables_.nodes().contains(call.from);
  if (body.returns && !known) {
    return answer(cancelled("node " + call.from.short_hex() + " has been declared dead meanwhile; what it runs has been replaced, and it has to join as a new node"));
  }
  if (body.returns) {
    LOG(info, "node {} at {} is back", body.info.node.short_hex(), body.info.address);
    answer(ControlAnswer{std::int64_t{options_.durable}});
    reconcile(body);
    return place_pending();
  }
  if (!body.replaces.is_none()) node_lost(body.replaces, "its machine has a new node");
  if (Status status = scheduler_->add_node(body.info); !status.ok()) return answer(status);
  body.info.alive = true;
  commit(command::AddNode{body.info});
  LOG(info, "node {} at {} joined", body.info.node.short_hex(), body.info.address);
  answer(ControlAnswer{std::int64_t{options_.durable}});
  tell_node_watchers();
  place_pending();
}

void Head::reconcile(const control::RegisterNode& body) {
  const NodeId node = body.info.node;
  const std::set<control::ActorInstance> running(body.actors.begin(), body.actors.end());
  std::set<control::ActorInstance> expected;
  std::vector<ActorId> stopping;
  std::vector<ActorId> unanswered;
  std::vector<ActorId> missing;
  for (const auto& [id, record] : tables_.actors()) {
    if (record.node != node || (record.phase != ActorPhase::kStarting && record.phase != ActorPhase::kAlive)) continue;
    expected.insert({id, record.incarnation});
    // Whether the node was ever asked, an earlier head has taken with it. The node knows an incarnation that it has, or had.
    if (record.ending) stopping.push_back(id);
    if (record.phase == ActorPhase::kStarting) unanswered.push_back(id);
    else if (!running.contains({id, record.incarnation})) missing.push_back(id);
  }
  for (const control::ActorInstance& actor : running) {
    if (expected.contains(actor)) continue;
    control::StopActor stop{actor.actor, actor.incarnation, std::chrono::milliseconds(0), false, "the cluster goes on without it"};
    links_.request(node, ControlRequest{{}, std::chrono::seconds(30), std::move(stop)}, [](Result<ControlAnswer>) {});
  }
  for (ActorId actor : stopping) stop_actor(*tables_.actor(actor), std::chrono::seconds(1), "killed on request", true);
  for (ActorId actor : unanswered) start_actor(actor, now_() + tables_.actor(actor)->spec.create_timeout);
  for (ActorId actor : missing) {
    const ActorRecord* record = tables_.actor(actor);
    if (!record || record->node != node || record->phase != ActorPhase::kAlive) continue;  // its owner's end has ended it
    DeathCause cause;
    cause.text = "it was gone when its node came back to the head";
    cause.pid = record->address.pid;
    incarnation_ended(actor, cause);
  }
  std::vector<JobId> over;
  for (const auto& [id, record] : tables_.jobs()) {
    const bool is_there = std::find(body.jobs.begin(), body.jobs.end(), id) != body.jobs.end();
    if (record.info.running && record.info.node == node && !is_there) over.push_back(id);
  }
  for (JobId job : over) end_job(job);
  // Whether the node was told of the others' ends, an earlier head has taken with it.
  for (const auto& [id, record] : tables_.jobs()) {
    if (!record.info.running) links_.request(node, ControlRequest{id, std::chrono::seconds(30), control::EndJob{id}}, [](Result<ControlAnswer>) {});
  }
}

Status Head::end_restore() {
  if (Status status = tables_.end_restore(); !status.ok()) return status;
  for (const auto& [id, info] : tables_.nodes()) {
    if (NodeUse{info}.is_leaving()) continue;
    if (Status status = scheduler_->add_node(info); !status.ok()) return status;
  }
  const Deadline now = now_();
  for (const auto& [id, group] : tables_.groups()) {
    if (group.placed) scheduler_->restore_group(group.spec, group.nodes);
    else pending_groups_.push_back({id, now + options_.restored_wait});
  }
  for (const auto& [id, record] : tables_.actors()) {
    switch (record.phase) {
      case ActorPhase::kPending: {
        // Whoever waits for one that never ran asks again, with a deadline of its own.
        pending_actors_.push_back({id, record.restarts > 0 ? Deadline::max() : now + options_.restored_wait});
        break;
      }
      case ActorPhase::kStarting:
      case ActorPhase::kAlive: {
        scheduler_->restore_actor(record.spec, record.node);
        break;
      }
      case ActorPhase::kDead: break;
    }
  }
  return {};
}

void Head::tell_node_watchers() {
  for (ControlAnswerer& answer : node_watchers_.take({})) answer(ControlAnswer{node_list()});
}

control::NodeList Head::node_list() const {
  control::NodeList list{tables_.nodes_version(), {}};
  for (const auto& [id, info] : tables_.nodes()) {
    list.nodes.push_back(info);
    list.nodes.back().available = scheduler_->available(id);
  }
  return list;
}

void Head::on(const Call& call, control::WatchNodes& body, ControlAnswerer answer) {
  if (body.version != tables_.nodes_version()) return answer(ControlAnswer{node_list()});
  node_watchers_.add({}, call.deadline, std::move(answer));
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
    if (record.job == job && record.phase == ActorPhase::kPending && !record.spec.outlives_job) unplaced.push_back(id);
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
  drop_private_names(job);
  place_pending();
}

// -- Placement groups

void Head::on(const Call& call, control::CreateGroup& body, ControlAnswerer answer) {
  GroupId id = body.spec.group;
  if (id.is_none()) return answer(invalid_argument("a placement group needs an id"));
  if (!tables_.job_runs(call.job)) return answer(invalid_argument("job " + call.job.short_hex() + " is not running"));
  if (const GroupState* known = tables_.group(id)) {
    if (known->placed) return answer(ControlAnswer{*known});
    for (PendingGroup& pending : pending_groups_) {
      if (pending.group == id) pending.deadline = std::max(pending.deadline, call.deadline);
    }
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
  std::vector<ActorId> standing;
  for (const auto& [actor, record] : tables_.actors()) {
    if (!record.spec.bundle || record.spec.bundle->group != id || record.phase == ActorPhase::kDead) continue;
    if (record.phase == ActorPhase::kPending) waiting.push_back(actor);
    else standing.push_back(actor);  // what it stands on is given to others
  }
  for (ActorId actor : standing) {
    commit(command::ActorEnds{actor});
    stop_actor(*tables_.actor(actor), std::chrono::milliseconds(0), "its placement group is gone: " + why.message());
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
  const Deadline now = now_();
  for (const PendingActor& pending : actors) {
    if (pending.not_before > now || !try_place_actor(pending.actor, pending.deadline)) pending_actors_.push_back(pending);
  }
}

// -- Key-value pairs

Status Head::put_value(JobId job, const std::string& key, std::string value) {
  if (!job.is_none() && !tables_.job_serves(job)) return cancelled("job " + job.short_hex() + " has ended");
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
  forget_dead();
  const auto is_due = [&](const PendingActor& pending) { return pending.not_before != Deadline::min() && pending.not_before <= now; };
  if (std::any_of(pending_actors_.begin(), pending_actors_.end(), is_due)) {
    for (PendingActor& pending : pending_actors_) {
      if (is_due(pending)) pending.not_before = Deadline::min();
    }
    place_pending();
  }
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
  for (auto& [actor, answer] : end_waiters_.expire(now)) answer(nullptr);
  for (auto& [actor, answer] : actor_watchers_.expire(now)) answer(deadline_exceeded("nothing has happened to actor " + actor.short_hex()));
  for (auto& [none, answer] : node_watchers_.expire(now)) answer(deadline_exceeded("no node has come or gone"));
  for (auto& [group, answer] : group_waiters_.expire(now)) {
    answer(deadline_exceeded("placement group " + group.short_hex() + " is still not placed"));
  }
  for (auto& [name, waiter] : published_waiters_.expire(now)) {
    waiter.answer(deadline_exceeded("nobody has published '" + name.second + "' in namespace " + name.first +
                                    (waiter.request.version > 1 ? " in version " + std::to_string(waiter.request.version) : "")));
  }
  for (auto& [key, answer] : key_waiters_.expire(now)) answer(deadline_exceeded("nobody has set the key '" + key.second + "'"));
}

Deadline Head::next_tick() const {
  Deadline next = std::min({address_waiters_.earliest(), end_waiters_.earliest(), actor_watchers_.earliest(), node_watchers_.earliest(),
                            group_waiters_.earliest(), key_waiters_.earliest(), published_waiters_.earliest()});
  for (const PendingActor& pending : pending_actors_) {
    next = std::min(next, pending.deadline);
    if (pending.not_before != Deadline::min()) next = std::min(next, pending.not_before);
  }
  for (const PendingGroup& pending : pending_groups_) next = std::min(next, pending.deadline);
  if (tables_.dead_actors() > options_.dead_kept && !deaths_.empty()) next = std::min(next, deaths_.front() + options_.dead_kept_for + kForgetTogether);
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
