// The head's part about nodes that are about to leave (docs/adr/0027-drained-nodes.md). A drain is
// recorded before anything happens, so a head that is started again goes on with it; everything
// here may be done twice.
#include <algorithm>
#include <map>
#include <set>

#include "runtime/core/log.h"
#include "runtime/head/head.h"
#include "runtime/head/head_words.h"

namespace runtime {

using namespace head_words;

namespace {

constexpr std::size_t kReasonMax = 200;        // characters
constexpr std::ptrdiff_t kActorsNamedMax = 3;  // of those that keep a node
// Between two attempts to have the rest of a node's objects taken over.
constexpr std::chrono::milliseconds kRoundPause{500};
constexpr std::chrono::seconds kRoundTime{60};
// Before the deadline: what is still there then had better be taken over now.
constexpr std::chrono::milliseconds kLastCallMax{5000};
// An actor that moves has to have saved its state before its node ends.
constexpr std::chrono::milliseconds kMoveMarginMax{1000};
constexpr std::chrono::seconds kLeaveTime{30};

/// One line, of a length that fits into messages.
std::string tidy(std::string reason) {
  if (reason.empty()) reason = "on request";
  if (reason.size() > kReasonMax) reason.resize(kReasonMax);
  for (char& c : reason) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = ' ';
  }
  return reason;
}

std::string counted(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::chrono::milliseconds until(Deadline now, Deadline deadline) {
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::ceil<std::chrono::milliseconds>(deadline - now));
}

}  // namespace

void Head::on(const Call& call, control::DrainNode& body, ControlAnswerer answer) {
  auto node = tables_.nodes().find(body.node);
  if (node == tables_.nodes().end()) {
    const NodeDeparture* departure = tables_.departure(body.node);
    return answer(not_found(departure ? departure->why : "no node has the id " + body.node.hex()));
  }
  const std::string name = "node " + body.node.short_hex() + " (" + node->second.address + ")";
  if (node->second.is_head) {
    return answer(invalid_argument(name +
                                   " hosts the head, without which there is no cluster: it cannot "
                                   "be drained. Drain the others, or end the cluster with "
                                   "`starling stop --address " +
                                   node->second.address + "`"));
  }
  if (body.time.count() <= 0)
    return answer(
        invalid_argument(name + " is to be drained: a deadline above zero is needed, like 30s"));
  if (body.if_idle) {
    const NodeUse use = node_uses().at(body.node);
    if (!use.is_idle()) return answer(resource_exhausted(name + " is not idle: " + use.describe()));
  }
  const Deadline deadline = now_() + body.time;
  const auto known = drains_.find(body.node);
  // An earlier end counts: a node that is to go in ten minutes may be preempted in one.
  if (known != drains_.end() && known->second.deadline <= deadline) return answer(ControlAnswer{});
  begin_drain(body.node, tidy(std::move(body.reason)), body.time);
  LOG(info, "{} is drained ({}), asked by node {}: it leaves within {} ms", name,
      node->second.drain->reason, call.from.short_hex(), body.time.count());
  answer(ControlAnswer{});
  advance_drain(body.node);
}

void Head::begin_drain(NodeId node, std::string reason, std::chrono::milliseconds time) {
  commit(command::NodeDrains{
      node, NodeDrain{std::move(reason), time,
                      std::chrono::milliseconds(unix_milliseconds()) + time, 0, ""}});
  resume_drain(node, time);
  for (const auto& [id, info] : tables_.nodes()) tell_of_drain(id, node);
  stop_moving(node);  // those that were on their way already have less time now
  // What is not placed yet is to go elsewhere from the beginning.
  for (GroupId id : groups_prepared_on(node)) {
    stop_preparing(id);
    try_place_group(id);
  }
  tell_node_watchers();
}

void Head::resume_drain(NodeId node, std::chrono::milliseconds left) {
  scheduler_->begin_drain(node);
  ++drains_begun_;
  Drain& drain = drains_[node];
  drain.deadline = now_() + left;
  drain.last_call = drain.deadline - std::min(left / 4, kLastCallMax);
  drain.next_round = Deadline::min();
  drain.called_last = false;
  drain.outstanding = 0;
  drain.told = false;
}

void Head::resume_drains() {
  for (const auto& [id, info] : tables_.nodes()) {
    if (!info.drain) continue;
    // However the machine's clock was set meanwhile, it has no more time than it was given.
    resume_drain(id,
                 std::clamp(info.drain->deadline - std::chrono::milliseconds(unix_milliseconds()),
                            std::chrono::milliseconds(0), info.drain->left));
  }
  // The places that were kept for those that move are kept again, before anybody else looks for
  // one.
  for (auto& [node, drain] : drains_) {
    for (const ActorId& actor : tables_.started_on(node)) {
      const ActorRecord& record = *tables_.actor(actor);
      if (!record.moving || record.phase != ActorPhase::kAlive || record.spec.bundle) continue;
      if (auto place = scheduler_->move_actor(record.spec); place.ok())
        drain.moves_to[actor] = place->node;
    }
  }
}

void Head::tell_of_drain(NodeId to, NodeId node) {
  const NodeInfo& info = tables_.nodes().at(node);
  NodeDrain drain = *info.drain;
  drain.left = until(now_(), drains_.at(node).deadline);
  links_.event(to, control::NodeDrains{node, std::move(drain)});
}

void Head::catch_up_on_drains(NodeId node) {
  for (const auto& [id, drain] : drains_) tell_of_drain(node, id);
  auto own = drains_.find(node);
  if (own == drains_.end()) return;
  own->second.told = false;
  stop_moving(node);  // what it was asked before, an earlier head or connection has taken with it
  advance_drain(node);
}

void Head::advance_drains() {
  std::vector<NodeId> nodes;
  for (const auto& [node, drain] : drains_) nodes.push_back(node);
  for (const NodeId& node : nodes) advance_drain(node);
}

void Head::advance_drain(NodeId node) {
  auto found = drains_.find(node);
  if (found == drains_.end() || found->second.told) return;
  Drain& drain = found->second;
  const Deadline now = now_();
  if (now >= drain.deadline) return leave(node, "at its deadline");
  move_groups(node);
  move_actors(node);
  move_published(node);
  const bool empty = is_empty(node);
  if (!empty) drain.emptied = false;
  const bool has_emptied = empty && !drain.emptied;
  const bool is_over = drain.outstanding == 0;
  if (is_over && drain.emptied && drain.failed == 0 && drain.publishing.empty() &&
      !has_sole_copies(node))
    return leave(node, "empty");
  // A first round early, so that most is done when it matters; one when nothing runs there any
  // more; and a last call. None of these waits for a process that does not answer the one before.
  const bool is_last_call = !drain.called_last && now >= drain.last_call;
  if (!has_emptied && !is_last_call && (!is_over || now < drain.next_round)) return;
  drain.called_last = drain.called_last || is_last_call;
  drain.emptied = empty;
  drain.next_round = empty               ? now + kRoundPause
                     : drain.called_last ? drain.deadline
                                         : drain.last_call;
  take_over_objects(node);
}

// -- Actors

bool Head::may_move(const ActorRecord& record) const {
  if (record.ending || record.spec.max_restarts == 0) return false;
  return tables_.job_runs(record.job) || record.spec.outlives_job;
}

void Head::move_actors(NodeId node) {
  const std::string drained = drain_text(node);
  std::vector<ActorId> there;
  for (const ActorId& actor : tables_.started_on(node)) {
    const ActorRecord& record = *tables_.actor(actor);
    if (record.phase == ActorPhase::kAlive && !record.ending && !record.moving)
      there.push_back(actor);
  }
  std::map<ActorShape, std::string> without_place;  // within one look there is only less
  for (const ActorId& actor : there) {
    const ActorRecord& record = *tables_.actor(actor);
    std::string why;
    if (record.spec.bundle) {  // it moves with its gang
      const auto& stay = drains_.at(node).gangs_stay;
      auto gang = stay.find(record.spec.bundle->group);
      if (gang == stay.end()) continue;
      why = gang->second;
    } else if (!may_move(record)) {
      why = "it may not be started elsewhere (ActorOptions::max_restarts is 0)";
    } else if (auto like = without_place.find(shape_of(record.spec)); like != without_place.end()) {
      why = like->second;
    } else if (auto place = scheduler_->move_actor(record.spec); !place.ok()) {
      why = without_place[shape_of(record.spec)] = place.status().message();
    } else {
      drains_.at(node).moves_to[actor] = place->node;
      commit(command::ActorMoves{actor});
      stop_for_move(*tables_.actor(actor));
      continue;
    }
    why = "its " + drained + ", and it stays to the end: " + why;
    if (record.pending_reason != why) commit(command::ActorWaits{actor, why});
  }
}

void Head::stop_moving(NodeId node) {
  for (const ActorId& actor : tables_.started_on(node)) {
    const ActorRecord& record = *tables_.actor(actor);
    if (record.moving && record.phase == ActorPhase::kAlive) stop_for_move(record);
  }
  // Those of their gangs that end elsewhere.
  for (const auto& [id, placement] : drains_.at(node).gangs_moving) {
    const GroupState* group = tables_.group(id);
    if (!group || group->placed || group->placements != placement) continue;
    for (const ActorId& actor : tables_.members(id)) {
      const ActorRecord& record = *tables_.actor(actor);
      if (is_started(record.phase) && record.node != node && tables_.nodes().contains(record.node))
        stop_torn(record, drain_text(node), time_to_move(node));
    }
  }
}

void Head::stop_for_move(const ActorRecord& record) {
  stop_actor(record, time_to_move(record.node), "its " + drain_text(record.node), true);
}

std::chrono::milliseconds Head::time_to_move(NodeId node) const {
  const auto left = until(now_(), drains_.at(node).deadline);
  return std::max(std::chrono::milliseconds(1), left - std::min(left / 4, kMoveMarginMax));
}

std::string Head::drain_text(NodeId node) const {
  return "node " + node.short_hex() + " is drained (" + tables_.nodes().at(node).drain->reason +
         ")";
}

bool Head::is_empty(NodeId node) const {
  const bool jobs =
      std::any_of(tables_.jobs().begin(), tables_.jobs().end(), [&](const auto& entry) {
        return entry.second.info.node == node && entry.second.info.running;
      });
  return !jobs && tables_.started_on(node).empty();
}

std::string Head::what_keeps(NodeId node) const {
  const std::set<ActorId>& there = tables_.started_on(node);
  const std::size_t actors = there.size();
  std::size_t jobs = 0;
  std::string named;
  for (auto id = there.begin();
       id != there.end() && std::distance(there.begin(), id) < kActorsNamedMax; ++id) {
    const ActorRecord& record = *tables_.actor(*id);
    named += (named.empty() ? "" : "; ") + record.spec.class_name + " " + id->short_hex();
    if (record.moving)
      named += " is moving";
    else if (!record.pending_reason.empty())
      named += ": " + record.pending_reason;
  }
  for (const auto& [id, record] : tables_.jobs()) {
    if (record.info.node == node && record.info.running) ++jobs;
  }
  std::string text;
  if (actors > 0)
    text = counted(actors, "actor") + " (" + named +
           (std::ssize(there) > kActorsNamedMax ? "; ..." : "") + ")";
  if (jobs > 0) text += (text.empty() ? "" : ", ") + counted(jobs, "job");
  return text;
}

NodeInfo Head::shown(const NodeInfo& info) const {
  NodeInfo node = info;
  node.available = scheduler_->available(info.node);
  if (auto drain = drains_.find(info.node); drain != drains_.end() && node.drain) {
    node.drain->left = until(now_(), drain->second.deadline);
    node.drain->waits_for = what_keeps(info.node);
    if (node.drain->waits_for.empty())
      node.drain->waits_for =
          drain->second.told ? "the end of its process" : "its objects to be taken over";
  }
  return node;
}

// -- Placement groups: as wholes

Status Head::check_group_move(GroupId id) const {
  const GroupState& group = *tables_.group(id);
  // A place that the job's program has not been brought to yet is as good elsewhere.
  if (const JobRecord* job = job_in(group);
      job && (job->info.pid != 0 || job->info.node == group.nodes.front()))
    return invalid_argument("it is what job " + job->info.job.short_hex() +
                            " runs in, and jobs do not move");
  for (ActorId actor : tables_.members(id)) {
    const ActorRecord& record = *tables_.actor(actor);
    const std::string name = record.spec.class_name + " " + actor.short_hex();
    if (record.phase == ActorPhase::kStarting && record.restarts == 0)
      return unavailable(name + " of its placement group is being built");
    if (is_started(record.phase) && !may_move(record)) {
      return invalid_argument(name +
                              " of its placement group may not be started elsewhere "
                              "(ActorOptions::max_restarts is 0, or it is ending)");
    }
  }
  return scheduler_->check_move(group.spec);
}

void Head::move_groups(NodeId node) {
  auto& stay = drains_.at(node).gangs_stay;
  stay.clear();
  const auto grace = time_to_move(node);
  const std::set<GroupId> there = tables_.placed_on(node);
  for (GroupId id : there) {
    if (Status status = check_group_move(id); !status.ok()) {
      stay[id] = status.message();
      continue;
    }
    mark_moving(tables_.members(id));
    drains_.at(node).gangs_moving[id] = tables_.group(id)->placements;
    tear_group(id, drain_text(node), grace);
    try_place_group(id);
  }
}

// -- Objects

void Head::take_over_objects(NodeId node) {
  Drain& drain = drains_.at(node);
  drain.failed = 0;
  const auto left = until(now_(), drain.deadline);
  const auto time = std::clamp(drain.called_last ? left : left / 2, std::chrono::milliseconds(1),
                               std::chrono::milliseconds(kRoundTime));
  const std::uint64_t round = ++rounds_;
  drain.round = round;
  drain.outstanding = 1;  // until all are asked
  for (const auto& [id, info] : tables_.nodes()) {
    if (id == node) continue;
    ++drain.outstanding;
    links_.request(id, ControlRequest{{}, time, control::TakeOver{node}},
                   [this, node, round, id = id](Result<ControlAnswer> answer) {
                     const auto* failed =
                         answer.ok() ? std::get_if<std::int64_t>(&*answer) : nullptr;
                     // What a node that has gone referred to is gone too.
                     const std::uint64_t lacking =
                         failed ? static_cast<std::uint64_t>(std::max<std::int64_t>(0, *failed))
                         : tables_.nodes().contains(id) ? 1
                                                        : 0;
                     on_taken_over(node, round, lacking);
                   });
  }
  on_taken_over(node, round, 0);
}

void Head::on_taken_over(NodeId node, std::uint64_t round, std::uint64_t failed) {
  auto found = drains_.find(node);
  if (found == drains_.end() || found->second.round != round || found->second.outstanding == 0)
    return;
  found->second.failed += failed;
  if (--found->second.outstanding > 0) return;
  advance_drain(node);
}

bool Head::is_sole(const std::vector<ObjectLocation>& copies, NodeId node) const {
  const auto stays = [&](const ObjectLocation& copy) {
    return copy.node != node && !drains_.contains(copy.node) && tables_.nodes().contains(copy.node);
  };
  return std::none_of(copies.begin(), copies.end(), stays);
}

bool Head::has_sole_copies(NodeId node) const {
  for (const auto& [name, versions] : tables_.published().all()) {
    for (const auto& [version, published] : versions) {
      const auto* copies = std::get_if<std::vector<ObjectLocation>>(&published.value);
      if (!copies || !is_sole(*copies, node)) continue;
      if (std::any_of(copies->begin(), copies->end(),
                      [&](const ObjectLocation& copy) { return copy.node == node; }))
        return true;
    }
  }
  return false;
}

void Head::move_published(NodeId node) {
  for (const auto& [name, versions] : tables_.published().all()) {
    for (const auto& [version, published] : versions) {
      const auto* copies = std::get_if<std::vector<ObjectLocation>>(&published.value);
      if (!copies) continue;
      const auto here = std::find_if(copies->begin(), copies->end(),
                                     [&](const ObjectLocation& copy) { return copy.node == node; });
      if (here != copies->end()) move_copy(name, version, *here, *copies);
    }
  }
}

void Head::move_copy(const PublishedTable::Name& name, std::uint64_t version,
                     const ObjectLocation& copy, const std::vector<ObjectLocation>& copies) {
  const NodeId node = copy.node;
  Drain& drain = drains_.at(node);
  const auto has_one = [&](NodeId id) {
    return std::any_of(copies.begin(), copies.end(),
                       [&](const ObjectLocation& other) { return other.node == id; });
  };
  // Those that could not take it are asked again once all have been.
  std::set<NodeId>& refused = drain.refused[{name, version}];
  NodeId target, again;
  for (const auto& [id, info] : tables_.nodes()) {
    if (drains_.contains(id) || has_one(id)) continue;
    if (again.is_none()) again = id;
    if (target.is_none() && !refused.contains(id)) target = id;
  }
  if (target.is_none()) {
    refused.clear();
    target = again;
  }
  if (target.is_none() || now_() < drain.next_publishing ||
      !drain.publishing.emplace(name, version).second)
    return;
  const auto time = std::max(std::chrono::milliseconds(1), until(now_(), drain.deadline));
  ControlRequest request{{}, time, ObjectControl{control::AdoptObject{copy}}};
  links_.request(target, std::move(request),
                 [this, name, version, node, target](Result<ControlAnswer> adopted) {
                   on_copy_moved(name, version, node, target, std::move(adopted));
                 });
}

void Head::on_copy_moved(const PublishedTable::Name& name, std::uint64_t version, NodeId from,
                         NodeId target, Result<ControlAnswer> adopted) {
  auto* objects = adopted.ok() ? std::get_if<ObjectControlAnswer>(&*adopted) : nullptr;
  auto* to = objects ? std::get_if<ObjectLocation>(objects) : nullptr;
  auto drain = drains_.find(from);
  if (drain != drains_.end()) drain->second.publishing.erase({name, version});
  const auto* versions = tables_.published().find(name);
  const bool is_there = versions && versions->contains(version);
  const bool stays = to && tables_.nodes().contains(to->node);
  if (stays && is_there)
    commit(command::MoveCopy{name, version, from, *to});
  else if (stays)
    published_.drop_copies({*to});
  if (!to && drain != drains_.end()) {
    LOG(warn, "version {} of '{}' cannot be copied off node {}: {}", version, name.second,
        from.short_hex(), adopted.ok() ? "no answer" : adopted.status().message());
    drain->second.refused[{name, version}].insert(target);
    drain->second.next_publishing = now_() + kRoundPause;
  }
  if (drain != drains_.end()) advance_drain(from);
}

void Head::find_moved_object(const Call& call, const control::FindObject& body,
                             ControlAnswerer answer) {
  const NodeDeparture* departure = tables_.departure(body.node);
  const bool is_leaving = drains_.contains(body.node);  // it may have closed its port already
  if (!is_leaving && (!departure || !departure->drained))
    return answer(not_found("node " + body.node.short_hex() + " was not drained"));
  struct Asking {
    ControlAnswerer answer;
    std::size_t outstanding = 1;
    void end(const Status& none) {
      if (--outstanding == 0 && answer) answer(none);
    }
  };
  auto asking = std::make_shared<Asking>();
  asking->answer = std::move(answer);
  const Status none = not_found((is_leaving ? drain_text(body.node) : departure->why) +
                                "; no other node has taken the object over");
  for (const auto& [id, info] : tables_.nodes()) {
    if (id == body.node) continue;
    ++asking->outstanding;
    ControlRequest request{
        {}, until(now_(), call.deadline) / 2 + std::chrono::milliseconds(1), ObjectControl{body}};
    links_.request(id, std::move(request), [asking, none](Result<ControlAnswer> found) {
      auto* objects = found.ok() ? std::get_if<ObjectControlAnswer>(&*found) : nullptr;
      if (objects && std::holds_alternative<ObjectLocation>(*objects) && asking->answer)
        std::exchange(asking->answer, nullptr)(std::move(found));
      asking->end(none);
    });
  }
  asking->end(none);
}

// -- The end

void Head::leave(NodeId node, const std::string& how) {
  Drain& drain = drains_.at(node);
  drain.told = true;
  const NodeInfo& info = tables_.nodes().at(node);
  const std::string kept = how == "empty" ? "" : what_keeps(node);
  LOG(info, "node {} ({}) is drained ({}) and leaves, {}{}", node.short_hex(), info.address,
      info.drain->reason, how, kept.empty() ? "" : ", and still had " + kept);
  mark_moving(node);
  control::Leave body{"node " + node.short_hex() + " was drained (" + info.drain->reason +
                      ") and has left" + (how == "empty" ? "" : " " + how)};
  links_.request(node, ControlRequest{{}, kLeaveTime, std::move(body)},
                 [](Result<ControlAnswer>) {});
}

void Head::mark_moving(NodeId node) {
  mark_moving(tables_.started_on(node));
  // With it go the gangs that have a bundle there.
  for (GroupId id : tables_.placed_on(node)) mark_moving(tables_.members(id));
}

void Head::mark_moving(const std::set<ActorId>& actors) {
  for (const ActorId& actor : actors) {
    const ActorRecord& record = *tables_.actor(actor);
    if (is_started(record.phase) && !record.moving && may_move(record))
      commit(command::ActorMoves{actor});
  }
}

Deadline Head::next_drain_tick() const {
  Deadline next = Deadline::max();
  for (const auto& [node, drain] : drains_) {
    if (drain.told) continue;
    next = std::min(next, drain.deadline);
    if (!drain.called_last) next = std::min(next, drain.last_call);
    if (drain.outstanding == 0)
      next = std::min(next, std::max(drain.next_round, now_() + std::chrono::milliseconds(1)));
    if (drain.publishing.empty() && drain.next_publishing > now_())
      next = std::min(next, drain.next_publishing);
  }
  return next;
}

}  // namespace runtime
