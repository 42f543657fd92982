#include "runtime/head/group_manager.h"

#include <algorithm>
#include <utility>

#include "runtime/core/log.h"
#include "runtime/head/head_words.h"

namespace runtime {

using namespace head_words;

namespace {

/// What a group takes of each of its nodes.
std::map<NodeId, ResourceMap> holdings_of(const GroupSpec& spec, const std::vector<NodeId>& nodes) {
  std::map<NodeId, ResourceMap> holdings;
  for (std::size_t b = 0; b < nodes.size(); ++b) {
    ResourceMap& holding = holdings[nodes[b]];
    for (const auto& [name, amount] : spec.bundles[b]) holding[name] += amount;
  }
  return holdings;
}

}  // namespace

void GroupManager::begin(GroupId id, Deadline deadline) {
  queue_.add(id, deadline);
  place(id);
}

void GroupManager::restored() {
  for (const auto& [id, group] : context_.tables.groups().all()) {
    if (group.placed)
      context_.scheduler.restore_group(group.spec, {group.nodes, group.gpus});
    else
      queue_.add(
          id, group.is_torn() ? Deadline::max() : context_.now() + context_.options.restored_wait);
  }
}

void GroupManager::late(GroupId id) {
  drop(id, resource_exhausted(context_.tables.groups().find(id)->pending_reason));
}

// -- The first phase: the nodes are asked

bool GroupManager::place(GroupId id) {
  const GroupState* group = context_.tables.groups().find(id);
  if (!group || group->placed || is_under_way(id)) return true;
  const std::string before =
      group->is_torn() ? "it has lost a node and is placed again as a whole: " : "";
  for (ActorId member : context_.tables.actors().members(id)) {
    const ActorRecord& record = *context_.tables.actors().find(member);
    if (!is_started(record.phase)) continue;
    context_.commit(command::GroupWaits{
        id, before + "its actors are ending where it was, " + describe(record.spec) + " for one"});
    return true;
  }
  auto place = context_.scheduler.place_group(group->spec);
  if (place.ok()) {
    prepare(*group, *std::move(place), before);
    return true;
  }
  if (place.status().code() == ErrorCode::kResourceExhausted) {
    context_.commit(command::GroupWaits{id, before + place.status().message()});
    return false;
  }
  drop(id, place.status());
  return true;
}

void GroupManager::prepare(const GroupState& group, GroupPlace place, const std::string& before) {
  const GroupId id = group.spec.group;
  Preparation preparation{++attempts_, std::move(place), {}};
  const auto holdings = holdings_of(group.spec, preparation.place.nodes);
  for (const auto& [node, resources] : holdings) preparation.asked.insert(node);
  const std::uint64_t attempt = preparation.attempt;
  preparations_.emplace(id, std::move(preparation));
  context_.commit(command::GroupWaits{id, before + "its nodes are asked to hold its bundles"});
  for (const auto& [node, resources] : holdings)
    reservations_.prepare(node, {id, attempt}, resources);
}

void GroupManager::place_elsewhere(NodeId node) {
  for (GroupId id : prepared_on(node)) {
    stop_preparing(id);
    place(id);
  }
}

std::vector<GroupId> GroupManager::prepared_on(NodeId node) const {
  std::vector<GroupId> found;
  for (const auto& [id, preparation] : preparations_) {
    const std::vector<NodeId>& nodes = preparation.place.nodes;
    if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) found.push_back(id);
  }
  return found;
}

std::vector<std::vector<NodeId>> GroupManager::places_under_way() const {
  std::vector<std::vector<NodeId>> places;
  for (const auto& [id, preparation] : preparations_) places.push_back(preparation.place.nodes);
  return places;
}

void GroupManager::stop_preparing(GroupId id) {
  auto found = preparations_.find(id);
  if (found == preparations_.end()) return;
  release_everywhere(id, found->second.place.nodes);
  context_.scheduler.remove_group(id);
  preparations_.erase(found);
}

void GroupManager::stop_preparing_on(NodeId node) {
  for (GroupId id : prepared_on(node)) stop_preparing(id);
}

void GroupManager::release_everywhere(GroupId id, const std::vector<NodeId>& nodes) {
  for (NodeId node : std::set<NodeId>(nodes.begin(), nodes.end())) {
    if (context_.tables.nodes().contains(node)) reservations_.release(node, id);
  }
}

void GroupManager::on_reserved(NodeId node, const std::vector<ReservationSender::Attempt>& asked,
                               const Result<control::Refusals>& answer) {
  std::map<GroupId, std::string> refused;
  if (answer.ok()) {
    for (const control::Refusal& refusal : answer->refused) refused[refusal.group] = refusal.reason;
  }
  bool again = false;
  for (const auto& [group, attempt] : asked) {
    auto found = preparations_.find(group);
    if (found == preparations_.end() || found->second.attempt != attempt) continue;
    auto reason = refused.find(group);
    if (!answer.ok() || reason != refused.end()) {
      on_refused(group, node, answer.ok() ? reason->second : answer.status().message());
      again = true;
      continue;
    }
    found->second.asked.erase(node);
    if (!found->second.asked.empty()) continue;
    on_prepared(group);
    again = again || !context_.tables.actors().members(group).empty();
  }
  if (again) queue_.place_all();
}

void GroupManager::on_refused(GroupId id, NodeId node, const std::string& why) {
  const std::string text = "node " + node.short_hex() + " refused to hold its bundles: " + why;
  LOG(warn, "{}: {}", describe(context_.tables.groups().find(id)->spec), text);
  stop_preparing(id);
  context_.commit(command::GroupWaits{id, text});
  if (context_.tables.nodes().contains(node)) closed_nodes_.close(node);
}

// -- The second phase: it is placed once that is recorded, and the nodes get to know

void GroupManager::on_prepared(GroupId id) {
  auto preparation = preparations_.extract(id);
  const std::vector<NodeId> nodes = preparation.mapped().place.nodes;
  context_.commit(command::GroupPlaced{id, std::move(preparation.mapped().place)});
  for (NodeId node : std::set<NodeId>(nodes.begin(), nodes.end())) reservations_.commit(node, id);
  queue_.remove(id);
  on_decided_(id, Status());
}

void GroupManager::node_returned(NodeId node) {
  stop_preparing_on(node);
  std::vector<control::Holding> holdings;
  for (GroupId id : context_.tables.groups().placed_on(node)) {
    const GroupState& group = *context_.tables.groups().find(id);
    holdings.push_back({id, holdings_of(group.spec, group.nodes).at(node)});
  }
  reservations_.renew(node, std::move(holdings));
}

// -- The end

void GroupManager::drop(GroupId id, const Status& why) {
  const ClusterTables& tables = context_.tables;
  const std::string text = "its placement group is gone: " + why.message();
  std::vector<ActorId> waiting;
  std::vector<ActorId> standing;
  for (ActorId actor : tables.actors().members(id)) {
    if (tables.actors().find(actor)->phase == ActorPhase::kPending)
      waiting.push_back(actor);
    else
      standing.push_back(actor);  // what it stands on is given to others once it has ended
  }
  for (ActorId actor : standing) {
    context_.commit(command::ActorEnds{actor});
    actors_.stop(*tables.actors().find(actor), std::chrono::milliseconds(0), text, false);
  }
  stop_preparing(id);
  release_everywhere(id, std::vector<NodeId>(tables.groups().find(id)->nodes));
  context_.scheduler.remove_group(id);
  queue_.remove(id);
  context_.commit(command::RemoveGroup{id});
  on_decided_(id, why);
  for (ActorId actor : waiting) {
    const ActorRecord* record = tables.actors().find(actor);
    if (!record || record->phase != ActorPhase::kPending) continue;  // its owner's end has ended it
    actors_.die(actor, cause_of(text), Status(why.code(), text));
  }
}

std::set<GroupId> GroupManager::node_lost(NodeId node, const std::string& text) {
  std::set<GroupId> torn = context_.tables.groups().placed_on(node);
  stop_preparing_on(node);
  for (GroupId id : torn) tear(id, text, kEndGrace);
  reservations_.forget(node);
  closed_nodes_.forget(node);
  return torn;
}

void GroupManager::tear(GroupId id, const std::string& text, std::chrono::milliseconds grace) {
  const ClusterTables& tables = context_.tables;
  const GroupState& group = *tables.groups().find(id);
  LOG(warn, "{} is placed again as a whole: {}", describe(group.spec), text);
  release_everywhere(id, group.nodes);
  context_.scheduler.remove_group(id);
  context_.commit(
      command::GroupTorn{id, "it has lost a node and is placed again as a whole: " + text});
  queue_.add(id, Deadline::max());
  for (ActorId actor : tables.actors().members(id)) {
    const ActorRecord& record = *tables.actors().find(actor);
    // Those of a lost node have no process to stop.
    if (is_started(record.phase) && tables.nodes().contains(record.node))
      actors_.stop_torn(record, text, grace);
  }
}

// -- Time

void GroupManager::tick(Deadline now) {
  reservations_.tick(now);
  if (closed_nodes_.tick(now)) queue_.place_all();
}

Deadline GroupManager::next_tick() const {
  return std::min(reservations_.next_tick(), closed_nodes_.next_tick());
}

}  // namespace runtime
