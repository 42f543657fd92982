#include "runtime/head/cluster_tables.h"

#include <algorithm>
#include <utility>

#include "runtime/core/check.h"

namespace runtime {

namespace {

template <class Map, class Key>
auto* lookup(const Map& map, const Key& key) {
  auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

/// Of sets by something: none is empty.
template <class Map, class Key, class Value>
void remove_from(Map& sets, const Key& key, const Value& value) {
  auto found = sets.find(key);
  if (found == sets.end()) return;
  found->second.erase(value);
  if (found->second.empty()) sets.erase(found);
}

}  // namespace

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

void ClusterTables::apply(const HeadCommand& command) {
  std::visit([this](const auto& c) { on(c); }, command);
}

const ActorRecord* ClusterTables::actor(ActorId id) const { return lookup(actors_, id); }

const ActorRecord* ClusterTables::actor_named(const std::string& name_space,
                                              const std::string& name) const {
  const ActorId* id = lookup(names_, std::pair(name_space, name));
  return id ? actor(*id) : nullptr;
}

std::vector<ActorId> ClusterTables::owned_by(ActorId owner) const {
  const std::set<ActorId>* owned = lookup(owned_, owner);
  return owned ? std::vector<ActorId>(owned->begin(), owned->end()) : std::vector<ActorId>();
}

std::string ClusterTables::name_space(JobId id) const {
  const JobRecord* record = job(id);
  return record && !record->driver.name_space.empty() ? record->driver.name_space
                                                      : private_name_space(id);
}

const JobRecord* ClusterTables::job(JobId id) const { return lookup(jobs_, id); }

bool ClusterTables::job_runs(JobId id) const {
  const JobRecord* record = job(id);
  return record && record->info.running;
}

bool ClusterTables::job_serves(JobId id) const { return job_runs(id) || outliving_.contains(id); }

const GroupState* ClusterTables::group(GroupId id) const { return lookup(groups_, id); }

const GroupState* ClusterTables::group_named(const std::string& name_space,
                                             const std::string& name) const {
  const GroupId* id = lookup(group_names_, std::pair(name_space, name));
  return id ? group(*id) : nullptr;
}

const std::set<ActorId>& ClusterTables::members(GroupId id) const {
  static const std::set<ActorId> kNone;
  const std::set<ActorId>* found = lookup(members_, id);
  return found ? *found : kNone;
}

const std::set<ActorId>& ClusterTables::started_on(NodeId node) const {
  static const std::set<ActorId> kNone;
  const std::set<ActorId>* found = lookup(started_on_, node);
  return found ? *found : kNone;
}

const std::set<GroupId>& ClusterTables::placed_on(NodeId node) const {
  static const std::set<GroupId> kNone;
  const std::set<GroupId>* found = lookup(placed_on_, node);
  return found ? *found : kNone;
}

void ClusterTables::leave_node(const ActorRecord& record) {
  remove_from(started_on_, record.node, record.spec.actor);
}

void ClusterTables::leave_nodes(const GroupState& group) {
  for (const NodeId& node : group.nodes) remove_from(placed_on_, node, group.spec.group);
}

const std::string* ClusterTables::value(JobId job, const std::string& key) const {
  const auto* pairs = lookup(pairs_, job);
  return pairs ? lookup(*pairs, key) : nullptr;
}

std::size_t ClusterTables::keys(JobId job) const {
  const auto* pairs = lookup(pairs_, job);
  return pairs ? pairs->size() : 0;
}

ActorRecord& ClusterTables::existing(ActorId id) {
  auto found = actors_.find(id);
  CHECK(found != actors_.end());
  return found->second;
}

void ClusterTables::on(const command::AddNode& c) {
  NodeInfo& added = nodes_[c.info.node] = c.info;
  added.joined_as = ++nodes_version_;
  added.drain.reset();
  changed(c.info.node);
  changed(OfCounters{});
}

void ClusterTables::on(const command::RemoveNode& c) {
  auto gone = nodes_.extract(c.node);
  CHECK(!gone.empty());
  for (const auto& [name, version] : published_.remove_node(c.node, c.why))
    changed(OfPublished{name, version});
  ++nodes_version_;
  const bool drained = gone.mapped().drain.has_value();
  departures_.push_back({std::move(gone.mapped()), c.why, drained, nodes_version_});
  changed(OfDeparture{c.node});
  while (departures_.size() > kDeparturesKept) {
    changed(OfDeparture{departures_.front().node.node});
    departures_.pop_front();
  }
  changed(c.node);
  changed(OfCounters{});
}

void ClusterTables::on(const command::NodeDrains& c) {
  std::optional<NodeDrain>& drain = nodes_.at(c.node).drain;
  drain = c.drain;
  drain->version = ++nodes_version_;
  changed(c.node);
  changed(OfCounters{});
}

void ClusterTables::on(const command::TokenChanged& c) {
  token_ = c.state;
  changed(OfToken{});
}

const NodeDeparture* ClusterTables::departure(NodeId id) const {
  auto found =
      std::find_if(departures_.rbegin(), departures_.rend(),
                   [&](const NodeDeparture& departure) { return departure.node.node == id; });
  return found == departures_.rend() ? nullptr : &*found;
}

void ClusterTables::on(const command::StartJob& c) {
  std::erase(ended_jobs_, c.info.job);
  JobRecord& record = jobs_[c.info.job];
  record.info = c.info;
  record.driver = c.driver;
  record.ended_as = 0;
  changed(c.info.job);
}

void ClusterTables::on(const command::EndJob& c) {
  auto found = jobs_.find(c.job);
  CHECK(found != jobs_.end());
  JobInfo& info = found->second.info;
  info.running = false;
  info.outcome = c.outcome;
  info.end = c.cause;
  info.ended_ms = c.ended_ms;
  found->second.ended_as = next_order();
  changed(c.job);
  if (!outliving_.contains(c.job)) drop_pairs(c.job);
  ended_jobs_.push_back(c.job);
  forget_ended_jobs();
}

void ClusterTables::on(const command::ReleaseJob& c) {
  if (!outliving_.contains(c.job)) drop_pairs(c.job);
}

void ClusterTables::drop_pairs(JobId job) {
  auto found = pairs_.find(job);
  if (found == pairs_.end()) return;
  for (const auto& [key, value] : found->second) changed(OfPair{job, key});
  pairs_.erase(found);
}

std::uint64_t ClusterTables::next_order() {
  changed(OfCounters{});
  return ++order_;
}

void ClusterTables::forget_ended_jobs() {
  // What outlives a job is restarted from the job's program, which therefore stays known.
  for (auto job = ended_jobs_.begin();
       job != ended_jobs_.end() && ended_jobs_.size() > kEndedJobsKept;) {
    if (outliving_.contains(*job)) {
      ++job;
      continue;
    }
    changed(*job);
    jobs_.erase(*job);
    job = ended_jobs_.erase(job);
  }
}

void ClusterTables::on(const command::AddActor& c) {
  CHECK(!actors_.contains(c.spec.actor));
  ActorRecord& record = actors_[c.spec.actor];
  record.spec = c.spec;
  record.job = c.job;
  if (!c.spec.name.empty()) {
    const bool added =
        names_.emplace(std::pair(c.spec.name_space, c.spec.name), c.spec.actor).second;
    CHECK(added);
  }
  if (!c.spec.owner.is_none()) owned_[c.spec.owner].insert(c.spec.actor);
  if (c.spec.outlives_job) ++outliving_[c.job];
  if (c.spec.bundle) members_[c.spec.bundle->group].insert(c.spec.actor);
  changed(OfSpec{c.spec.actor});
  changed(c.spec.actor);
}

void ClusterTables::on(const command::ActorWaits& c) {
  existing(c.actor).pending_reason = c.reason;
}

void ClusterTables::on(const command::ActorPlaced& c) {
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
  changed(c.actor);
  changed(OfCounters{});
}

void ClusterTables::on(const command::ActorAlive& c) {
  ActorRecord& record = existing(c.address.actor);
  CHECK(record.phase == ActorPhase::kStarting);
  record.phase = ActorPhase::kAlive;
  record.address = c.address;
  ++record.version;
  changed(c.address.actor);
}

void ClusterTables::on(const command::ActorEnds& c) {
  existing(c.actor).ending = true;
  changed(c.actor);
}

void ClusterTables::on(const command::ActorMoves& c) {
  ActorRecord& record = existing(c.actor);
  record.moving = true;
  record.pending_reason.clear();
  changed(c.actor);
}

void ClusterTables::on(const command::ActorParked& c) {
  existing(c.actor).spec.resources.clear();
  existing(c.actor).gpus.clear();
  changed(OfSpec{c.actor});
  changed(c.actor);
}

void ClusterTables::on(const command::ActorRestarts& c) {
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
  changed(c.actor);
}

void ClusterTables::on(const command::ActorStateSaved& c) {
  existing(c.actor).spec.saved_state = c.state;
  changed(OfSaved{c.actor});
}

void ClusterTables::on(const command::ActorDead& c) {
  ActorRecord& record = existing(c.actor);
  CHECK(record.phase != ActorPhase::kDead);
  leave_node(record);
  record.phase = ActorPhase::kDead;
  record.pending_reason.clear();
  record.death = c.cause;
  record.gpus.clear();
  // There may be a hundred thousand.
  record.spec.constructor_args = {};
  if (record.spec.saved_state) changed(OfSaved{c.actor});
  record.spec.saved_state.reset();
  record.spec.env = {};
  record.spec.labels = {};
  record.address.unix_path = {};
  record.address.node_address = {};
  ++record.version;
  if (!record.spec.name.empty()) names_.erase(std::pair(record.spec.name_space, record.spec.name));
  remove_from(owned_, record.spec.owner, c.actor);
  if (record.spec.bundle) remove_from(members_, record.spec.bundle->group, c.actor);
  if (record.spec.outlives_job && --outliving_.at(record.job) == 0) {
    outliving_.erase(record.job);
    if (!job_runs(record.job)) drop_pairs(record.job);
    forget_ended_jobs();
  }
  record.died_as = next_order();
  dead_.push_back(c.actor);
  changed(OfSpec{c.actor});
  changed(c.actor);
}

void ClusterTables::on(const command::ForgetDead& c) {
  CHECK(c.count <= dead_.size());
  for (std::size_t i = 0; i < c.count; ++i) {
    changed(OfSpec{dead_.front()});
    changed(dead_.front());
    actors_.erase(dead_.front());
    dead_.pop_front();
  }
}

void ClusterTables::on(const command::PutKey& c) {
  pairs_[c.job][c.key] = c.value;
  changed(OfPair{c.job, c.key});
}

void ClusterTables::on(const command::DeleteKey& c) {
  auto found = pairs_.find(c.job);
  if (found != pairs_.end()) found->second.erase(c.key);
  changed(OfPair{c.job, c.key});
}

void ClusterTables::on(const command::AddGroup& c) {
  CHECK(!groups_.contains(c.spec.group));
  GroupState& group = groups_[c.spec.group];
  group.spec = c.spec;
  group.job = c.job;
  if (!c.spec.name.empty()) {
    const bool added =
        group_names_.emplace(std::pair(c.spec.name_space, c.spec.name), c.spec.group).second;
    CHECK(added);
  }
  changed(c.spec.group);
}

void ClusterTables::on(const command::GroupWaits& c) {
  groups_.at(c.group).pending_reason = c.reason;
}

void ClusterTables::on(const command::GroupPlaced& c) {
  GroupState& group = groups_.at(c.group);
  leave_nodes(group);
  group.placed = true;
  group.pending_reason.clear();
  group.nodes = c.place.nodes;
  group.gpus = c.place.gpus;
  ++group.placements;
  for (const NodeId& node : group.nodes) placed_on_[node].insert(c.group);
  changed(c.group);
}

void ClusterTables::on(const command::GroupTorn& c) {
  GroupState& group = groups_.at(c.group);
  leave_nodes(group);
  group.placed = false;
  group.pending_reason = c.reason;
  group.nodes.clear();
  group.gpus.clear();
  changed(c.group);
}

void ClusterTables::on(const command::RemoveGroup& c) {
  const GroupSpec& spec = groups_.at(c.group).spec;
  leave_nodes(groups_.at(c.group));
  if (!spec.name.empty()) group_names_.erase(std::pair(spec.name_space, spec.name));
  groups_.erase(c.group);
  changed(c.group);
}

void ClusterTables::on(const command::Publish& c) {
  published_.add(c.name, c.version, {c.value, c.type});
  changed(OfPublished{c.name, c.version});
}

void ClusterTables::on(const command::MoveCopy& c) {
  published_.move_copy(c.name, c.version, c.from, c.to);
  changed(OfPublished{c.name, c.version});
}

void ClusterTables::on(const command::Unpublish& c) {
  published_.remove(c.name, c.version);
  changed(OfPublished{c.name, c.version});
}

void ClusterTables::on(const command::RequestBegun& c) {
  for (std::size_t slot : requests_.begin(c.id, c.at_ms, c.about)) changed(OfRequest{slot});
}

void ClusterTables::on(const command::RequestAnswered& c) {
  for (std::size_t slot : requests_.answer(c.id, c.at_ms, c.reply)) changed(OfRequest{slot});
}

}  // namespace runtime
