#include "runtime/head/work_mover.h"

#include <utility>

#include "runtime/head/head_words.h"
#include "runtime/head/job_place.h"

namespace runtime {

using namespace head_words;

void WorkMover::move(NodeId node) {
  move_groups(node);
  move_actors(node);
}

// -- Placement groups: as wholes

Status WorkMover::check_move(GroupId id) const {
  const ClusterTables& tables = context_.tables;
  const GroupState& group = *tables.groups().find(id);
  // A place that the job's program has not been brought to yet is as good elsewhere.
  if (const JobRecord* job = job_in(tables, group);
      job && (job->info.pid != 0 || job->info.node == group.nodes.front()))
    return invalid_argument("it is what job " + job->info.job.short_hex() +
                            " runs in, and jobs do not move");
  for (ActorId actor : tables.actors().members(id)) {
    const ActorRecord& record = *tables.actors().find(actor);
    const std::string name = record.spec.class_name + " " + actor.short_hex();
    if (record.phase == ActorPhase::kStarting && record.restarts == 0)
      return unavailable(name + " of its placement group is being built");
    if (is_started(record.phase) && !may_move(tables, record)) {
      return invalid_argument(name +
                              " of its placement group may not be started elsewhere "
                              "(ActorOptions::max_restarts is 0, or it is ending)");
    }
  }
  return context_.scheduler.check_move(group.spec);
}

void WorkMover::move_groups(NodeId node) {
  Moves& moves = moves_[node];
  moves.staying.clear();
  const auto grace = drained_.time_to_move(node);
  const std::set<GroupId> there = context_.tables.groups().placed_on(node);
  for (GroupId id : there) {
    if (Status status = check_move(id); !status.ok()) {
      moves.staying[id] = status.message();
      continue;
    }
    mark_moving(context_.tables.actors().members(id));
    moves.torn[id] = context_.tables.groups().find(id)->placements;
    groups_.tear(id, drained_.text(node), grace);
    groups_.place(id);
  }
}

std::set<GroupId> WorkMover::stranded_groups() const {
  std::set<GroupId> stranded;
  for (const auto& [node, moves] : moves_) {
    for (const auto& [id, why] : moves.staying) {
      const GroupState* group = context_.tables.groups().find(id);
      if (group && group->placed && check_move(id).code() == ErrorCode::kResourceExhausted)
        stranded.insert(id);
    }
  }
  return stranded;
}

// -- Actors

void WorkMover::move_actors(NodeId node) {
  std::vector<ActorId> there;
  for (const ActorId& actor : context_.tables.actors().started_on(node)) {
    const ActorRecord& record = *context_.tables.actors().find(actor);
    if (record.phase == ActorPhase::kAlive && !record.ending && !record.moving)
      there.push_back(actor);
  }
  const std::map<GroupId, std::string>& staying = moves_[node].staying;
  std::map<ActorShape, std::string> without_place;  // within one look there is only less
  for (const ActorId& actor : there) {
    const ActorRecord& record = *context_.tables.actors().find(actor);
    std::string why;
    if (record.spec.bundle) {  // it moves with its gang
      auto gang = staying.find(record.spec.bundle->group);
      if (gang == staying.end()) continue;
      why = gang->second;
    } else {
      why = move_actor(record, without_place);
      if (why.empty()) continue;
    }
    why = "its " + drained_.text(node) + ", and it stays to the end: " + why;
    if (record.pending_reason != why) context_.commit(command::ActorWaits{actor, why});
  }
}

std::string WorkMover::move_actor(const ActorRecord& record,
                                  std::map<ActorShape, std::string>& without_place) {
  if (!may_move(context_.tables, record))
    return "it may not be started elsewhere (ActorOptions::max_restarts is 0)";
  if (auto like = without_place.find(shape_of(record.spec)); like != without_place.end())
    return like->second;
  auto place = context_.scheduler.move_actor(record.spec);
  if (!place.ok()) return without_place[shape_of(record.spec)] = place.status().message();
  moves_[record.node].places[record.spec.actor] = place->node;
  context_.commit(command::ActorMoves{record.spec.actor});
  stop(record);
  return "";
}

void WorkMover::stop(const ActorRecord& record) {
  actors_.stop(record, drained_.time_to_move(record.node), "its " + drained_.text(record.node),
               true);
}

void WorkMover::ask_again(NodeId node) {
  const ClusterTables& tables = context_.tables;
  for (const ActorId& actor : tables.actors().started_on(node)) {
    const ActorRecord& record = *tables.actors().find(actor);
    if (record.moving && record.phase == ActorPhase::kAlive) stop(record);
  }
  // Those of their gangs that end elsewhere.
  for (const auto& [id, placement] : moves_[node].torn) {
    const GroupState* group = tables.groups().find(id);
    if (!group || group->placed || group->placements != placement) continue;
    for (const ActorId& actor : tables.actors().members(id)) {
      const ActorRecord& record = *tables.actors().find(actor);
      if (is_started(record.phase) && record.node != node && tables.nodes().contains(record.node))
        actors_.stop_torn(record, drained_.text(node), drained_.time_to_move(node));
    }
  }
}

void WorkMover::keep_places(NodeId node) {
  for (const ActorId& actor : context_.tables.actors().started_on(node)) {
    const ActorRecord& record = *context_.tables.actors().find(actor);
    if (!record.moving || record.phase != ActorPhase::kAlive || record.spec.bundle) continue;
    if (auto place = context_.scheduler.move_actor(record.spec); place.ok())
      moves_[node].places[actor] = place->node;
  }
}

std::vector<WorkMover::KeptPlace> WorkMover::kept_places() const {
  std::vector<KeptPlace> kept;
  for (const auto& [node, moves] : moves_) {
    for (const auto& [actor, to] : moves.places) {
      const ActorRecord* record = context_.tables.actors().find(actor);
      if (record && record->moving && record->node == node && is_started(record->phase))
        kept.push_back({actor, node, to});
    }
  }
  return kept;
}

void WorkMover::mark_moving(NodeId node) {
  mark_moving(context_.tables.actors().started_on(node));
  for (GroupId id : context_.tables.groups().placed_on(node))
    mark_moving(context_.tables.actors().members(id));
}

void WorkMover::mark_moving(const std::set<ActorId>& actors) {
  for (const ActorId& actor : actors) {
    const ActorRecord& record = *context_.tables.actors().find(actor);
    if (is_started(record.phase) && !record.moving && may_move(context_.tables, record))
      context_.commit(command::ActorMoves{actor});
  }
}

}  // namespace runtime
