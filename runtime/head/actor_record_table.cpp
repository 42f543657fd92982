#include "runtime/head/actor_record_table.h"

#include "runtime/core/check.h"
#include "runtime/head/table_lookup.h"

namespace runtime {

using table_lookup::lookup;
using table_lookup::remove_from;
using table_lookup::set_of;

ActorState ActorRecord::state() const {
  ActorState state;
  state.actor = spec.actor;
  state.job = job;
  state.node = node;
  state.worker = address.worker;
  state.class_name = spec.class_name;
  state.name = spec.name;
  state.phase = phase;
  state.pending_reason = pending_reason;
  state.pid = address.pid;
  state.resources = spec.resources;
  state.death = death;
  state.restarts = restarts;
  state.incarnation = incarnation;
  state.name_space = spec.name_space;
  state.detached = spec.detached;
  state.version = version;
  state.gpus = gpus;
  state.moves = moves;
  return state;
}

// -- Changes

ActorRecord& ActorRecordTable::existing(ActorId id) {
  auto found = actors_.find(id);
  CHECK(found != actors_.end());
  return found->second;
}

bool ActorRecordTable::index(const ActorRecord& record) {
  const ActorSpec& spec = record.spec;
  if (!spec.name.empty() &&
      !names_.emplace(std::pair(spec.name_space, spec.name), spec.actor).second)
    return false;
  if (!spec.owner.is_none()) owned_[spec.owner].insert(spec.actor);
  if (spec.outlives_job) ++outliving_[record.job];
  if (spec.bundle) members_[spec.bundle->group].insert(spec.actor);
  if (record.phase != ActorPhase::kPending) started_on_[record.node].insert(spec.actor);
  return true;
}

void ActorRecordTable::leave_node(const ActorRecord& record) {
  remove_from(started_on_, record.node, record.spec.actor);
}

void ActorRecordTable::apply(const command::AddActor& c) {
  CHECK(!actors_.contains(c.spec.actor));
  ActorRecord& record = actors_[c.spec.actor];
  record.spec = c.spec;
  record.job = c.job;
  const bool is_name_free = index(record);
  CHECK(is_name_free);
  changed_specs_.note(c.spec.actor);
  changed_rows_.note(c.spec.actor);
}

void ActorRecordTable::apply(const command::ActorWaits& c) {
  existing(c.actor).pending_reason = c.reason;
}

void ActorRecordTable::apply(const command::ActorPlaced& c) {
  ActorRecord& record = existing(c.actor);
  CHECK(c.incarnation > incarnation_);
  incarnation_ = c.incarnation;
  leave_node(record);
  record.phase = ActorPhase::kStarting;
  record.pending_reason.clear();
  record.node = c.place.node;
  started_on_[record.node].insert(c.actor);
  record.gpus = c.place.gpus;
  record.incarnation = c.incarnation;
  record.moving = false;
  ++record.version;
  changed_rows_.note(c.actor);
}

void ActorRecordTable::apply(const command::ActorAlive& c) {
  ActorRecord& record = existing(c.address.actor);
  CHECK(record.phase == ActorPhase::kStarting);
  record.phase = ActorPhase::kAlive;
  record.address = c.address;
  ++record.version;
  changed_rows_.note(c.address.actor);
}

void ActorRecordTable::apply(const command::ActorEnds& c) {
  existing(c.actor).ending = true;
  changed_rows_.note(c.actor);
}

void ActorRecordTable::apply(const command::ActorMoves& c) {
  ActorRecord& record = existing(c.actor);
  record.moving = true;
  record.pending_reason.clear();
  changed_rows_.note(c.actor);
}

void ActorRecordTable::apply(const command::ActorParked& c) {
  existing(c.actor).spec.resources.clear();
  existing(c.actor).gpus.clear();
  changed_specs_.note(c.actor);
  changed_rows_.note(c.actor);
}

void ActorRecordTable::apply(const command::ActorRestarts& c) {
  ActorRecord& record = existing(c.actor);
  CHECK(record.phase == ActorPhase::kStarting || record.phase == ActorPhase::kAlive);
  leave_node(record);
  record.phase = ActorPhase::kPending;
  record.pending_reason = "its process ended: " + c.cause.text;
  record.death = c.cause;
  record.gpus.clear();
  ++record.restarts;
  if (std::exchange(record.moving, false)) ++record.moves;
  ++record.version;
  changed_rows_.note(c.actor);
}

void ActorRecordTable::apply(const command::ActorStateSaved& c) {
  existing(c.actor).spec.saved_state = c.state;
  changed_saved_.note(c.actor);
}

std::optional<JobId> ActorRecordTable::end(const command::ActorDead& c, std::uint64_t order) {
  ActorRecord& record = existing(c.actor);
  CHECK(record.phase != ActorPhase::kDead);
  leave_node(record);
  record.phase = ActorPhase::kDead;
  record.pending_reason.clear();
  record.death = c.cause;
  record.gpus.clear();
  // There may be a hundred thousand.
  record.spec.constructor_args = {};
  if (record.spec.saved_state) changed_saved_.note(c.actor);
  record.spec.saved_state.reset();
  record.spec.env = {};
  record.spec.labels = {};
  record.address.unix_path = {};
  record.address.node_address = {};
  ++record.version;
  record.died_as = order;
  if (!record.spec.name.empty()) names_.erase(std::pair(record.spec.name_space, record.spec.name));
  remove_from(owned_, record.spec.owner, c.actor);
  if (record.spec.bundle) remove_from(members_, record.spec.bundle->group, c.actor);
  dead_.push_back(c.actor);
  changed_specs_.note(c.actor);
  changed_rows_.note(c.actor);
  if (!record.spec.outlives_job || --outliving_.at(record.job) > 0) return std::nullopt;
  outliving_.erase(record.job);
  return record.job;
}

void ActorRecordTable::apply(const command::ForgetDead& c) {
  CHECK(c.count <= dead_.size());
  for (std::size_t i = 0; i < c.count; ++i) {
    changed_specs_.note(dead_.front());
    changed_rows_.note(dead_.front());
    actors_.erase(dead_.front());
    dead_.pop_front();
  }
}

// -- Look-ups

const ActorRecord* ActorRecordTable::find(ActorId id) const { return lookup(actors_, id); }

const ActorRecord* ActorRecordTable::named(const std::string& name_space,
                                           const std::string& name) const {
  const ActorId* id = lookup(names_, std::pair(name_space, name));
  return id ? find(*id) : nullptr;
}

std::vector<ActorId> ActorRecordTable::owned_by(ActorId owner) const {
  const std::set<ActorId>& owned = set_of(owned_, owner);
  return {owned.begin(), owned.end()};
}

const std::set<ActorId>& ActorRecordTable::members(GroupId group) const {
  return set_of(members_, group);
}

const std::set<ActorId>& ActorRecordTable::started_on(NodeId node) const {
  return set_of(started_on_, node);
}

// -- The journal

void ActorRecordTable::follow() {
  changed_specs_.follow();
  changed_rows_.follow();
  changed_saved_.follow();
}

void ActorRecordTable::take_changes(std::vector<JournalWrite>& writes) {
  changed_specs_.take(writes, [this](ActorId id) { return write_of_spec(id); });
  changed_rows_.take(writes, [this](ActorId id) { return write_of_row(id); });
  changed_saved_.take(writes, [this](ActorId id) { return write_of_saved(id); });
}

JournalWrite ActorRecordTable::write_of_spec(ActorId id) const {
  const ActorRecord* record = find(id);
  if (!record) return {journal::key_of_spec(id), {}};
  journal::ActorSpecOf entry{record->job, record->spec};
  entry.spec.saved_state.reset();
  return {journal::key_of_spec(id), journal::encode(entry)};
}

JournalWrite ActorRecordTable::write_of_row(ActorId id) const {
  const ActorRecord* record = find(id);
  if (!record) return {journal::key_of_row(id), {}};
  journal::ActorRow row{id,
                        record->phase,
                        record->node,
                        record->incarnation,
                        record->restarts,
                        record->ending,
                        record->version,
                        record->address,
                        record->death,
                        record->died_as,
                        record->gpus,
                        record->moving,
                        record->moves};
  return {journal::key_of_row(id), journal::encode(row)};
}

JournalWrite ActorRecordTable::write_of_saved(ActorId id) const {
  const ActorRecord* record = find(id);
  if (!record || !record->spec.saved_state) return {journal::key_of_saved(id), {}};
  return {journal::key_of_saved(id),
          journal::encode(journal::ActorSaved{id, *record->spec.saved_state})};
}

Status ActorRecordTable::restore(const journal::ActorSpecOf& entry) {
  ActorRecord& record = actors_[entry.spec.actor];
  record.spec = entry.spec;
  record.job = entry.job;
  return {};
}

Status ActorRecordTable::restore(const journal::ActorRow& entry) {
  auto found = actors_.find(entry.actor);
  if (found == actors_.end()) return invalid_argument("the actor's specification is missing");
  ActorRecord& record = found->second;
  record.phase = entry.phase;
  record.node = entry.node;
  record.incarnation = entry.incarnation;
  record.restarts = entry.restarts;
  record.ending = entry.ending;
  record.version = entry.version;
  record.address = entry.address;
  record.death = entry.death;
  record.died_as = entry.died_as;
  record.gpus = entry.gpus;
  record.moving = entry.moving;
  record.moves = entry.moves;
  if ((record.phase == ActorPhase::kDead) != (record.died_as != 0))
    return invalid_argument("it is neither dead nor alive");
  return {};
}

Status ActorRecordTable::restore(const journal::ActorSaved& entry) {
  auto found = actors_.find(entry.actor);
  if (found == actors_.end()) return invalid_argument("the actor's specification is missing");
  found->second.spec.saved_state = entry.state;
  return {};
}

Status ActorRecordTable::end_restore(const JobTable& jobs) {
  std::map<std::uint64_t, ActorId> dead;
  for (const auto& [id, record] : actors_) {
    if (!jobs.find(record.job) && record.phase != ActorPhase::kDead)
      return invalid_argument("actor " + id.hex() + " is of a job that is not there");
    if (record.incarnation > incarnation_)
      return invalid_argument("actor " + id.hex() +
                              " has a larger incarnation than the actor placed last");
    if (record.phase == ActorPhase::kDead) {
      if (!dead.emplace(record.died_as, id).second)
        return invalid_argument("two actors died at the same moment");
    } else if (!index(record)) {
      return invalid_argument("two living actors are named '" + record.spec.name +
                              "' in namespace '" + record.spec.name_space + "'");
    }
  }
  for (const auto& [order, id] : dead) dead_.push_back(id);
  return {};
}

}  // namespace runtime
