// The tables' way into a journal and back.
#include <algorithm>

#include "runtime/head/cluster_tables.h"

namespace runtime {

std::vector<JournalWrite> ClusterTables::changes() {
  std::vector<JournalWrite> writes;
  writes.reserve(changed_.size());
  for (const Changed& what : changed_)
    writes.push_back(std::visit([this](const auto& which) { return write_of(which); }, what));
  changed_.clear();
  return writes;
}

JournalWrite ClusterTables::write_of(const OfCounters&) const {
  return {journal::key_of_counters(),
          journal::encode(journal::Counters{incarnation_, nodes_version_, order_})};
}

JournalWrite ClusterTables::write_of(const OfToken&) const {
  return {journal::key_of_token(), journal::encode(journal::Token{token_})};
}

JournalWrite ClusterTables::write_of(const NodeId& id) const {
  auto found = nodes_.find(id);
  if (found == nodes_.end()) return {journal::key_of(id), {}};
  return {journal::key_of(id), journal::encode(journal::Node{found->second})};
}

JournalWrite ClusterTables::write_of(const JobId& id) const {
  const JobRecord* record = job(id);
  if (!record) return {journal::key_of(id), {}};
  return {journal::key_of(id),
          journal::encode(journal::Job{record->info, record->driver, record->ended_as})};
}

JournalWrite ClusterTables::write_of(const OfSpec& what) const {
  const ActorRecord* record = actor(what.actor);
  if (!record) return {journal::key_of_spec(what.actor), {}};
  journal::ActorSpecOf entry{record->job, record->spec};
  entry.spec.saved_state.reset();
  return {journal::key_of_spec(what.actor), journal::encode(entry)};
}

JournalWrite ClusterTables::write_of(const ActorId& id) const {
  const ActorRecord* record = actor(id);
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

JournalWrite ClusterTables::write_of(const OfSaved& what) const {
  const ActorRecord* record = actor(what.actor);
  if (!record || !record->spec.saved_state) return {journal::key_of_saved(what.actor), {}};
  return {journal::key_of_saved(what.actor),
          journal::encode(journal::ActorSaved{what.actor, *record->spec.saved_state})};
}

JournalWrite ClusterTables::write_of(const GroupId& id) const {
  const GroupState* state = group(id);
  if (!state) return {journal::key_of(id), {}};
  return {journal::key_of(id), journal::encode(journal::Group{*state})};
}

JournalWrite ClusterTables::write_of(const OfPair& what) const {
  const std::string* found = value(what.job, what.key);
  if (!found) return {journal::key_of_pair(what.job, what.key), {}};
  return {journal::key_of_pair(what.job, what.key),
          journal::encode(journal::Pair{what.job, what.key, *found})};
}

JournalWrite ClusterTables::write_of(const OfPublished& what) const {
  const std::string key =
      journal::key_of_published(what.name.first, what.name.second, what.version);
  const auto* versions = published_.find(what.name);
  auto found = versions ? versions->find(what.version) : PublishedTable::Versions::const_iterator();
  if (!versions || found == versions->end()) return {key, {}};
  return {key, journal::encode(journal::PublishedEntry{what.name.first, what.name.second,
                                                       what.version, found->second.value,
                                                       found->second.type, found->second.loss})};
}

JournalWrite ClusterTables::write_of(const OfDeparture& what) const {
  const NodeDeparture* known = departure(what.node);
  if (!known) return {journal::key_of_departure(what.node), {}};
  return {journal::key_of_departure(what.node), journal::encode(journal::Departure{*known})};
}

JournalWrite ClusterTables::write_of(const OfRequest& what) const {
  const RequestRecord* record = requests_.in_slot(what.slot);
  if (!record) return {journal::key_of_request(what.slot), {}};
  return {journal::key_of_request(what.slot), journal::encode(journal::Request{*record})};
}

// -- Back

Status ClusterTables::restore(const journal::Entry& entry) {
  return std::visit([this](const auto& which) { return take(which); }, entry);
}

Status ClusterTables::take(const journal::Counters& entry) {
  incarnation_ = entry.incarnation;
  nodes_version_ = entry.nodes_version;
  order_ = entry.order;
  return {};
}

Status ClusterTables::take(const journal::Token& entry) {
  token_ = entry.state;
  return {};
}

Status ClusterTables::take(const journal::Node& entry) {
  nodes_[entry.info.node] = entry.info;
  return {};
}

Status ClusterTables::take(const journal::Job& entry) {
  jobs_[entry.info.job] = {entry.info, entry.driver, entry.ended_as};
  return {};
}

Status ClusterTables::take(const journal::ActorSpecOf& entry) {
  ActorRecord& record = actors_[entry.spec.actor];
  record.spec = entry.spec;
  record.job = entry.job;
  return {};
}

Status ClusterTables::take(const journal::ActorRow& entry) {
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

Status ClusterTables::take(const journal::ActorSaved& entry) {
  auto found = actors_.find(entry.actor);
  if (found == actors_.end()) return invalid_argument("the actor's specification is missing");
  found->second.spec.saved_state = entry.state;
  return {};
}

Status ClusterTables::take(const journal::Group& entry) {
  groups_[entry.state.spec.group] = entry.state;
  return {};
}

Status ClusterTables::take(const journal::Pair& entry) {
  pairs_[entry.job][entry.key] = entry.value;
  return {};
}

Status ClusterTables::take(const journal::PublishedEntry& entry) {
  const PublishedTable::Name name(entry.name_space, entry.name);
  const auto* versions = published_.find(name);
  if (versions && versions->rbegin()->first >= entry.version)
    return invalid_argument("its version is not larger than the one before");
  published_.add(name, entry.version, {entry.value, entry.type, entry.loss});
  return {};
}

Status ClusterTables::take(const journal::Departure& entry) {
  departures_.push_back(entry.departure);
  return {};
}

Status ClusterTables::take(const journal::Request& entry) {
  requests_.restore(entry.record);
  return {};
}

Status ClusterTables::end_restore() {
  std::sort(departures_.begin(), departures_.end(),
            [](const NodeDeparture& a, const NodeDeparture& b) { return a.version < b.version; });
  std::map<std::uint64_t, ActorId> dead;
  for (const auto& [id, record] : actors_) {
    if (!jobs_.contains(record.job) && record.phase != ActorPhase::kDead)
      return invalid_argument("actor " + id.hex() + " is of a job that is not there");
    if (record.incarnation > incarnation_)
      return invalid_argument("actor " + id.hex() +
                              " has a larger incarnation than the actor placed last");
    if (record.phase == ActorPhase::kDead) {
      if (!dead.emplace(record.died_as, id).second)
        return invalid_argument("two actors died at the same moment");
      continue;
    }
    if (!record.spec.name.empty() &&
        !names_.emplace(std::pair(record.spec.name_space, record.spec.name), id).second) {
      return invalid_argument("two living actors are named '" + record.spec.name +
                              "' in namespace '" + record.spec.name_space + "'");
    }
    if (!record.spec.owner.is_none()) owned_[record.spec.owner].insert(id);
    if (record.spec.outlives_job) ++outliving_[record.job];
    if (record.spec.bundle) members_[record.spec.bundle->group].insert(id);
    if (record.phase != ActorPhase::kPending) started_on_[record.node].insert(id);
  }
  for (const auto& [id, group] : groups_) {
    const GroupSpec& spec = group.spec;
    if (!spec.name.empty() &&
        !group_names_.emplace(std::pair(spec.name_space, spec.name), id).second) {
      return invalid_argument("two placement groups are named '" + spec.name + "' in namespace '" +
                              spec.name_space + "'");
    }
    if (group.placed && group.nodes.size() != spec.bundles.size())
      return invalid_argument("placement group " + id.hex() + " has a bundle without a node");
    if (!group.placed) continue;
    for (const NodeId& node : group.nodes) placed_on_[node].insert(id);
  }
  for (const auto& [order, id] : dead) dead_.push_back(id);
  std::map<std::uint64_t, JobId> ended;
  for (const auto& [id, record] : jobs_) {
    if (record.info.running != (record.ended_as == 0))
      return invalid_argument("job " + id.hex() + " has neither ended nor does it run");
    if (record.info.running != (record.info.outcome == JobOutcome::kNone))
      return invalid_argument("job " + id.hex() + " has no outcome, or one too early");
    if (!record.info.running) ended.emplace(record.ended_as, id);
  }
  for (const auto& [order, id] : ended) ended_jobs_.push_back(id);
  return {};
}

}  // namespace runtime
