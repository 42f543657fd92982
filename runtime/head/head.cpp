#include "runtime/head/head.h"

#include <algorithm>
#include <set>

#include "runtime/core/log.h"
#include "runtime/head/actor_pages.h"
#include "runtime/head/head_words.h"

namespace runtime {

using namespace head_words;

namespace {

// The dead are forgotten by the handful.
constexpr auto kForgetTogether = std::chrono::milliseconds(250);
// Thousands that wait for the same have one reason, which changes with every release.
constexpr auto kRefreshTogether = std::chrono::milliseconds(50);

}  // namespace

Head::Head(ClusterId cluster, std::unique_ptr<Scheduler> scheduler, HeadLinks& links,
           std::function<Deadline()> now, HeadOptions options)
    : cluster_(cluster),
      scheduler_(std::move(scheduler)),
      links_(links),
      now_(std::move(now)),
      options_(options),
      tokens_(options_.keyring, links_,
              [this](const TokenState& changed) { commit(command::TokenChanged{changed}); }) {}

// The journal's place: a command is applied once it is recorded.
void Head::commit(const HeadCommand& command) { tables_.apply(command); }

void Head::handle(NodeId from, ControlRequest request, ControlAnswerer answer) {
  Call call{from, request.job, now_() + request.timeout};
  bool known =
      tables_.nodes().contains(from) || std::holds_alternative<control::RegisterNode>(request.body);
  if (!known)
    return answer(unavailable("node " + from.short_hex() + " is not in the cluster (any more)"));
  answer = requests_.once(call, request, std::move(answer));
  if (answer) std::visit([&](auto& body) { on(call, body, std::move(answer)); }, request.body);
}

template <class Other>
void Head::on(const Call& call, Other&, ControlAnswerer answer) {
  answer(unimplemented("node " + call.from.short_hex() +
                       " sent the head a request that is not the head's to serve"));
}

void Head::on(const Call&, control::Heartbeat&, ControlAnswerer answer) { answer(ControlAnswer{}); }

void Head::on(const Call&, control::QueryCluster&, ControlAnswerer answer) {
  answer(ControlAnswer{cluster_state()});
}

// -- Nodes

void Head::on(const Call& call, control::RegisterNode& body, ControlAnswerer answer) {
  if (body.info.node != call.from) return answer(invalid_argument("a node registers itself only"));
  const bool known = tables_.nodes().contains(call.from);
  if (body.returns && !known) {
    return answer(cancelled("node " + call.from.short_hex() +
                            " has been declared dead meanwhile; what it runs has been replaced, "
                            "and it has to join as a new node"));
  }
  // Also one whose first answer was lost: it chose its id itself, and runs nothing yet.
  if (known) {
    LOG(info, "node {} at {} is back", body.info.node.short_hex(), body.info.address);
    answer(ControlAnswer{std::int64_t{options_.durable}});
    reconcile(body);
    tokens_.tell(call.from);
    catch_up_on_drains(call.from);
    return place_pending();
  }
  if (!body.replaces.is_none()) node_lost(body.replaces, "its machine has a new node");
  if (Status status = scheduler_->add_node(body.info); !status.ok()) return answer(status);
  body.info.alive = true;
  commit(command::AddNode{body.info});
  LOG(info, "node {} at {} joined", body.info.node.short_hex(), body.info.address);
  answer(ControlAnswer{std::int64_t{options_.durable}});
  tokens_.tell(call.from);
  catch_up_on_drains(call.from);
  tell_node_watchers();
  place_pending();
}

void Head::reconcile(const control::RegisterNode& body) {
  const NodeId node = body.info.node;
  renew_reservations(node);
  const std::set<control::ActorInstance> running(body.actors.begin(), body.actors.end());
  std::set<control::ActorInstance> expected;
  std::vector<ActorId> stopping;
  std::vector<ActorId> torn;
  std::vector<ActorId> unanswered;
  std::vector<ActorId> missing;
  for (const ActorId& id : tables_.started_on(node)) {
    const ActorRecord& record = *tables_.actor(id);
    expected.insert({id, record.incarnation});
    // Whether the node was ever asked, an earlier head has taken with it. The node knows an
    // incarnation that it has, or had.
    const GroupState* group =
        record.spec.bundle ? tables_.group(record.spec.bundle->group) : nullptr;
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
    links_.request(node, ControlRequest{{}, std::chrono::seconds(30), std::move(stop)},
                   [](Result<ControlAnswer>) {});
  }
  for (ActorId actor : stopping)
    stop_actor(*tables_.actor(actor), std::chrono::seconds(1), "killed on request", true);
  for (ActorId actor : torn) stop_torn(*tables_.actor(actor), "it had lost a node", kEndGrace);
  for (ActorId actor : unanswered)
    start_actor(actor, now_() + tables_.actor(actor)->spec.create_timeout);
  for (ActorId actor : missing) {
    const ActorRecord* record = tables_.actor(actor);
    if (!record || record->node != node || record->phase != ActorPhase::kAlive)
      continue;  // its owner's end has ended it
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
  for (JobId job : over)
    end_job({job, JobOutcome::kFailed, cause_of("it was gone when its node came back to the head"),
             unix_milliseconds()});
  // Whether the node was told of the others' ends, an earlier head has taken with it.
  for (const auto& [id, record] : tables_.jobs()) {
    if (!record.info.running) tell_of_end(id, node);
  }
}

Status Head::end_restore() {
  if (Status status = tables_.end_restore(); !status.ok()) return status;
  tokens_.restore(tables_.token());
  for (const auto& [id, info] : tables_.nodes()) {
    if (Status status = scheduler_->add_node(info); !status.ok()) return status;
  }
  const Deadline now = now_();
  for (const auto& [id, group] : tables_.groups()) {
    if (group.placed)
      scheduler_->restore_group(group.spec, {group.nodes, group.gpus});
    else
      queue_group(id, group.is_torn() ? Deadline::max() : now + options_.restored_wait);
  }
  for (const auto& [id, record] : tables_.actors()) {
    switch (record.phase) {
      case ActorPhase::kPending: {
        // Whoever waits for one that never ran asks again, with a deadline of its own.
        queue_actor(id, record.restarts > 0 ? Deadline::max() : now + options_.restored_wait);
        break;
      }
      case ActorPhase::kStarting:
      case ActorPhase::kAlive: {
        scheduler_->restore_actor(record.spec, {record.node, record.gpus});
        break;
      }
      case ActorPhase::kDead: break;
    }
  }
  resume_drains();
  return {};
}

void Head::tell_node_watchers() {
  for (NodeWatcher& watcher : node_watchers_.take({}))
    watcher.answer(ControlAnswer{node_list(watcher.version)});
}

control::NodeList Head::node_list(std::uint64_t known) const {
  control::NodeList list{tables_.nodes_version(), {}};
  for (const auto& [id, info] : tables_.nodes()) list.nodes.push_back(shown(info));
  for (const NodeDeparture& departure : tables_.departures()) {
    if (known != 0 && departure.version > known) list.departed.push_back(departure);
  }
  return list;
}

void Head::on(const Call& call, control::WatchNodes& body, ControlAnswerer answer) {
  if (body.version != tables_.nodes_version())
    return answer(ControlAnswer{node_list(body.version)});
  node_watchers_.add({}, call.deadline, NodeWatcher{body.version, std::move(answer)});
}

// -- Jobs

void Head::on(const Call& call, control::StartJob& body, ControlAnswerer answer) {
  if (body.info.job.is_none()) return answer(invalid_argument("a job needs an id"));
  const JobRecord* known = tables_.job(body.info.job);
  if (known && !known->info.running &&
      !body.info.place.is_none()) {  // it was stopped while it waited
    const bool is_its_users = known->info.user == body.info.user;
    return answer(cancelled("job " + body.info.job.short_hex() + " has ended" +
                            (is_its_users ? ": " + known->info.end.text : std::string())));
  }
  // With its place a job goes to another node, which may run it as another user; the place's id is
  // known to its submitter alone.
  const bool is_anothers = known && known->info.running && body.info.place.is_none() &&
                           !known->info.user.empty() && known->info.user != body.info.user;
  if (is_anothers || (known && known->info.running && known->info.place != body.info.place)) {
    return answer(invalid_argument("job " + body.info.job.short_hex() + " is another job already"));
  }
  if (known && known->info.running && known->info.node != call.from &&
      !has_place_on(known->info, body.info.place, call.from)) {
    return answer(
        invalid_argument("job " + body.info.job.short_hex() + " runs on another node already"));
  }
  body.info.node = call.from;
  body.info.running = true;
  body.info.outcome = JobOutcome::kNone;
  body.info.end = {};
  commit(command::StartJob{body.info, body.driver});
  answer(ControlAnswer{body.info.job});
}

void Head::on(const Call& call, control::ChangeToken& body, ControlAnswerer answer) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(call.deadline - now_());
  tokens_.change(std::move(body), left, tables_.nodes(), std::move(answer));
}

// -- Waiting for a place

/// Groups first: an actor placed before them could take what a whole gang waits for.
void Head::place_pending() {
  place_pending_groups();
  std::vector<PendingActor> actors = std::exchange(pending_actors_, {});
  without_room_.clear();
  const Deadline now = now_();
  for (const PendingActor& pending : actors) {
    // Those like one that has no room have none either: within one look at all of them, there is
    // only less.
    const bool like_another = without_room_.contains(pending.shape);
    if (pending.not_before <= now && !like_another) {
      if (try_place_actor(pending.actor, pending.deadline)) continue;
      without_room_.emplace(pending.shape, pending.actor);
    } else if (like_another) {
      refresh_at_ = std::min(refresh_at_, now + kRefreshTogether);
    }
    pending_actors_.push_back(pending);
  }
  if (pending_actors_.empty()) actor_shapes_.clear();
  // What has become free is first for those that have no place at all.
  advance_drains();
}

Head::ActorShape Head::shape_of(const ActorSpec& spec) {
  ActorShape shape(spec.class_name, spec.resources, spec.labels, spec.node, spec.node_is_preferred,
                   {});
  if (spec.bundle) std::get<5>(shape) = std::pair(spec.bundle->group, spec.bundle->index);
  return shape;
}

void Head::queue_actor(ActorId actor, Deadline deadline, Deadline not_before) {
  ActorShape shape = shape_of(tables_.actor(actor)->spec);
  pending_actors_.push_back(
      {actor, deadline, not_before,
       actor_shapes_.try_emplace(std::move(shape), actor_shapes_.size()).first->second});
  earliest_pending_ = std::min(
      earliest_pending_, not_before == Deadline::min() ? deadline : std::min(deadline, not_before));
}

/// Of actors that were not looked at, since others like them had no room.
void Head::refresh_reasons() {
  refresh_at_ = Deadline::max();
  for (const PendingActor& pending : pending_actors_) {
    auto like = without_room_.find(pending.shape);
    const ActorRecord* other = like == without_room_.end() ? nullptr : tables_.actor(like->second);
    if (other && other->phase == ActorPhase::kPending && pending.actor != like->second)
      commit(command::ActorWaits{pending.actor, other->pending_reason});
  }
}

// -- Key-value pairs and objects

void Head::on(const Call& call, control::KvPut& body, ControlAnswerer answer) {
  values_.serve(call, body, std::move(answer));
}

void Head::on(const Call& call, control::KvGet& body, ControlAnswerer answer) {
  values_.serve(call, body, std::move(answer));
}

void Head::on(const Call& call, control::KvAdd& body, ControlAnswerer answer) {
  values_.serve(call, body, std::move(answer));
}

void Head::on(const Call& call, control::KvDelete& body, ControlAnswerer answer) {
  values_.serve(call, body, std::move(answer));
}

void Head::on(const Call& call, ObjectControl& body, ControlAnswerer answer) {
  if (auto* publish = std::get_if<control::Publish>(&body))
    return published_.serve(call, *publish, std::move(answer));
  if (auto* find = std::get_if<control::FindPublished>(&body))
    return published_.serve(call, *find, std::move(answer));
  if (auto* unpublish = std::get_if<control::Unpublish>(&body))
    return published_.serve(call, *unpublish, std::move(answer));
  if (const auto* find = std::get_if<control::FindObject>(&body))
    return find_moved_object(call, *find, std::move(answer));
  if (std::holds_alternative<control::ListObjects>(body))
    return object_lists_.serve(call, std::move(answer));
  answer(unimplemented("the head keeps no objects of its own"));
}

// -- Events, time, questions

void Head::handle_event(NodeId from, const ControlEvent& event) {
  const auto* lines = std::get_if<LogLines>(&event);
  if (!lines) return;
  const JobRecord* job = tables_.job(lines->job);
  if (job && job->info.running && job->info.node != from) links_.event(job->info.node, event);
}

void Head::tick_pending(Deadline now) {
  const auto is_due = [&](const PendingActor& pending) {
    return pending.not_before != Deadline::min() && pending.not_before <= now;
  };
  if (std::any_of(pending_actors_.begin(), pending_actors_.end(), is_due)) {
    for (PendingActor& pending : pending_actors_) {
      if (is_due(pending)) pending.not_before = Deadline::min();
    }
    place_pending();
  }
  std::vector<GroupId> late;
  for (const auto& [number, pending] : pending_groups_) {
    if (pending.deadline <= now) late.push_back(pending.group);
  }
  for (GroupId id : late) {
    if (const GroupState* group = tables_.group(id))
      drop_group(id, resource_exhausted(group->pending_reason));
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
  earliest_pending_ = Deadline::max();
  for (const PendingActor& pending : pending_actors_) {
    earliest_pending_ = std::min(earliest_pending_, pending.deadline);
    if (pending.not_before != Deadline::min())
      earliest_pending_ = std::min(earliest_pending_, pending.not_before);
  }
  for (const auto& [number, pending] : pending_groups_)
    earliest_pending_ = std::min(earliest_pending_, pending.deadline);
}

void Head::place_no_more() {
  ends_ = true;
  for (const auto& [node, info] : tables_.nodes()) scheduler_->set_open(node, false);
}

void Head::tick() {
  Deadline now = now_();
  forget_dead();
  advance_drains();
  reservations_.tick(now);
  open_nodes();
  if (refresh_at_ <= now) refresh_reasons();
  if (earliest_pending_ <= now) tick_pending(now);
  for (auto& [actor, answer] : address_waiters_.expire(now)) {
    const ActorRecord* record = tables_.actor(actor);
    std::string phase = record ? std::string(to_string(record->phase)) : "gone";
    answer(deadline_exceeded(
        "actor " + actor.short_hex() + " is still " + phase +
        (record && !record->pending_reason.empty() ? ": " + record->pending_reason : "")));
  }
  for (auto& [actor, answer] : end_waiters_.expire(now)) answer(nullptr);
  for (auto& [actor, answer] : actor_watchers_.expire(now))
    answer(deadline_exceeded("nothing has happened to actor " + actor.short_hex()));
  for (auto& [none, watcher] : node_watchers_.expire(now))
    watcher.answer(deadline_exceeded("no node has come or gone"));
  for (auto& [group, answer] : group_waiters_.expire(now)) {
    const GroupState* state = tables_.group(group);
    answer(deadline_exceeded("placement group " + group.short_hex() + " is still not placed" +
                             (state ? ": " + state->pending_reason : "")));
  }
  published_.tick(now);
  values_.tick(now);
}

Deadline Head::next_tick() const {
  Deadline next =
      std::min({address_waiters_.earliest(), end_waiters_.earliest(), actor_watchers_.earliest(),
                node_watchers_.earliest(), group_waiters_.earliest(), values_.next_tick(),
                published_.next_tick(), next_drain_tick()});
  for (const auto& [node, until] : closed_nodes_) next = std::min(next, until);
  next = std::min({next, reservations_.next_tick(), refresh_at_, earliest_pending_});
  if (tables_.dead_actors() > options_.dead_kept && !deaths_.empty())
    next = std::min(next, deaths_.front() + options_.dead_kept_for + kForgetTogether);
  return next;
}

void Head::on(const Call&, ObserveControl& body, ControlAnswerer answer) {
  if (std::holds_alternative<control::ReadHead>(body))
    return answer(ControlAnswer{ObserveAnswer{numbers()}});
  auto* list = std::get_if<control::ListActors>(&body);
  if (!list) return answer(unimplemented("this is asked of a node, not of the head"));
  auto page = actor_page(tables_, *list);
  page.ok() ? answer(ControlAnswer{ObserveAnswer{*std::move(page)}}) : answer(page.status());
}

Numbers Head::numbers() const {
  Numbers numbers{{"nodes", static_cast<double>(tables_.nodes().size())},
                  {"actors_waiting", static_cast<double>(pending_actors_.size())}};
  for (ActorPhase phase :
       {ActorPhase::kPending, ActorPhase::kStarting, ActorPhase::kAlive, ActorPhase::kDead}) {
    numbers["actors_" + std::string(to_string(phase))] = 0;
  }
  double restarts = 0;
  for (const auto& [id, record] : tables_.actors()) {
    ++numbers["actors_" + std::string(to_string(record.phase))];
    restarts += record.restarts;
  }
  numbers["actor_restarts"] = restarts;
  numbers["nodes_draining"] = static_cast<double>(drains_.size());
  numbers["drains"] = static_cast<double>(drains_begun_);
  double running = 0, placed = 0;
  for (const auto& [id, record] : tables_.jobs()) running += record.info.running;
  numbers["jobs_running"] = running;
  numbers["jobs_ended"] = static_cast<double>(tables_.jobs().size()) - running;
  for (const auto& [id, group] : tables_.groups()) placed += group.placed;
  numbers["groups_placed"] = placed;
  numbers["groups_pending"] = static_cast<double>(tables_.groups().size()) - placed;
  return numbers;
}

ClusterState Head::cluster_state() const {
  ClusterState state;
  state.cluster = cluster_;
  for (const auto& [id, info] : tables_.nodes()) state.nodes.push_back(shown(info));
  for (const auto& [id, record] : tables_.actors()) state.actors.push_back(record.state());
  for (const auto& [id, group] : tables_.groups()) state.groups.push_back(group);
  for (const auto& [id, record] : tables_.jobs()) {
    state.jobs.push_back(record.info);
    state.jobs.back().end.output_tail.clear();  // long, and to be had by QueryJob
  }
  return state;
}

}  // namespace runtime
