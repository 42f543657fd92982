// The head's part about placement groups: their two-phase reservation, and what becomes of them
// when a node is lost (docs/adr/0022).
#include <algorithm>
#include <utility>

#include "runtime/core/log.h"
#include "runtime/core/nearest.h"
#include "runtime/head/head.h"
#include "runtime/head/head_words.h"

namespace runtime {

using namespace head_words;

namespace {

constexpr std::size_t kNameBytesMax = 1024;
// How long a node that refused gets nothing new.
constexpr auto kRefusalPause = std::chrono::milliseconds(1000);
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

// -- Requests

Status Head::check_new_group(const Call& call, GroupSpec& spec) const {
  if (spec.group.is_none()) return invalid_argument("a placement group needs an id");
  const bool may_create =
      tables_.job_runs(call.job) || (spec.detached && tables_.job_serves(call.job));
  if (!may_create) return invalid_argument("job " + call.job.short_hex() + " is not running");
  if (spec.name.size() > kNameBytesMax)
    return invalid_argument("the name of a placement group has " +
                            std::to_string(spec.name.size()) + " bytes, of at most 1024");
  if (spec.detached && spec.name.empty()) {
    return invalid_argument(
        describe(spec) +
        " is to be detached: give it a name, so that others can find and remove it");
  }
  const JobRecord* job = tables_.job(call.job);
  if (spec.detached && spec.name_space.empty() && job && job->driver.name_space.empty()) {
    return invalid_argument(
        describe(spec) +
        " is to be detached: give it or its driver a namespace, so that other drivers can name it "
        "(GroupSpec::name_space, RuntimeOptions::name_space)");
  }
  spec.name_space = spec.name.empty() ? "" : name_space(call, spec.name_space);
  if (const GroupState* other =
          spec.name.empty() ? nullptr : tables_.group_named(spec.name_space, spec.name)) {
    return invalid_argument("the name '" + spec.name + "' is taken by placement group " +
                            other->spec.group.short_hex() + " of job " + other->job.short_hex() +
                            " in namespace '" + spec.name_space + "'");
  }
  if (pending_groups_.size() >= options_.pending_max)
    return resource_exhausted(std::to_string(pending_groups_.size()) +
                              " placement groups wait already");
  return {};
}

void Head::on(const Call& call, control::CreateGroup& body, ControlAnswerer answer) {
  const GroupId id = body.spec.group;
  if (const GroupState* known =
          tables_.group(id)) {  // the same request again: its first answer was lost
    if (known->placed) return answer(ControlAnswer{*known});
    PendingGroup& pending = pending_groups_.at(pending_group_at_.at(id));
    pending.deadline = std::max(pending.deadline, call.deadline);
    return group_waiters_.add(id, call.deadline, std::move(answer));
  }
  if (call.has_begun)  // it had been added
    return answer(cancelled(describe(body.spec) + " was removed"));
  if (Status status = check_new_group(call, body.spec); !status.ok()) return answer(status);
  requests_.note_begun(call, 0);
  commit(command::AddGroup{call.job, std::move(body.spec)});
  group_waiters_.add(id, call.deadline + kAnswerGrace, std::move(answer));
  queue_group(id, call.deadline);
  try_place_group(id);
}

void Head::on(const Call& call, control::RemoveGroup& body, ControlAnswerer answer) {
  const GroupState* group = tables_.group(body.group);
  if (!group)
    return answer(not_found("no placement group has the id " + body.group.hex() +
                            did_you_mean(body.group.hex(), group_ids())));
  drop_group(body.group, cancelled(describe(group->spec) + " was removed"));
  answer(ControlAnswer{});
  place_pending();
}

void Head::on(const Call& call, control::QueryGroup& body, ControlAnswerer answer) {
  const std::string space = name_space(call, body.name_space);
  const GroupState* group =
      body.group.is_none() ? tables_.group_named(space, body.name) : tables_.group(body.group);
  if (!group && !body.group.is_none())
    return answer(not_found("no placement group has the id " + body.group.hex() +
                            did_you_mean(body.group.hex(), group_ids())));
  if (!group) {
    std::vector<std::string> names;
    for (const auto& [id, other] : tables_.groups()) {
      if (other.spec.name_space == space && !other.spec.name.empty())
        names.push_back(other.spec.name);
    }
    return answer(not_found("no placement group is named '" + body.name + "' in namespace '" +
                            space + "'" + did_you_mean(body.name, names)));
  }
  if (group->placed || !body.wait) return answer(ControlAnswer{*group});
  group_waiters_.add(group->spec.group, call.deadline, std::move(answer));
}

std::vector<std::string> Head::group_ids() const {
  std::vector<std::string> ids;
  for (const auto& [id, group] : tables_.groups()) ids.push_back(id.hex());
  return ids;
}

std::vector<GroupId> Head::groups_prepared_on(NodeId node) const {
  std::vector<GroupId> found;
  for (const auto& [id, preparation] : preparations_) {
    const std::vector<NodeId>& nodes = preparation.place.nodes;
    if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) found.push_back(id);
  }
  return found;
}

// -- Waiting

void Head::queue_group(GroupId id, Deadline deadline) {
  const GroupState& group = *tables_.group(id);
  if (pending_groups_.empty()) group_shapes_.clear();
  GroupWish wanted(group.spec.strategy, group.spec.bundles, group.spec.bundle_labels,
                   group.is_torn());
  const std::size_t shape =
      group_shapes_.try_emplace(std::move(wanted), group_shapes_.size()).first->second;
  const std::uint64_t number = ++arrivals_;
  pending_groups_.emplace(number, PendingGroup{id, deadline, shape});
  pending_group_at_[id] = number;
  earliest_pending_ = std::min(earliest_pending_, deadline);
}

void Head::unqueue_group(GroupId id) {
  auto at = pending_group_at_.find(id);
  if (at == pending_group_at_.end()) return;
  pending_groups_.erase(at->second);
  pending_group_at_.erase(at);
}

void Head::place_pending_groups() {
  std::vector<std::pair<GroupId, std::size_t>> waiting;
  for (const auto& [number, pending] : pending_groups_) {
    if (!preparations_.contains(pending.group)) waiting.emplace_back(pending.group, pending.shape);
  }
  // Those like one that has no room have none either: within one look at all of them, there is only
  // less.
  std::map<std::size_t, GroupId> without_room;
  for (const auto& [id, shape] : waiting) {
    const GroupState* group = tables_.group(id);
    if (!group) continue;  // it went with another
    auto like = without_room.find(shape);
    const GroupState* other = like == without_room.end() ? nullptr : tables_.group(like->second);
    if (!other) {
      if (try_place_group(id) == Placing::kNoRoom) without_room[shape] = id;
    } else {
      std::string reason = other->pending_reason;
      const std::string its_name = describe(other->spec);
      if (const std::size_t at = reason.find(its_name); at != std::string::npos)
        reason.replace(at, its_name.size(), describe(group->spec));
      if (reason != group->pending_reason) commit(command::GroupWaits{id, std::move(reason)});
    }
  }
}

// -- The first phase: the nodes are asked

Head::Placing Head::try_place_group(GroupId id) {
  const GroupState* group = tables_.group(id);
  if (!group || group->placed || preparations_.contains(id)) return Placing::kUnderWay;
  const std::string before =
      group->is_torn() ? "it has lost its place and is placed anew as a whole: " : "";
  for (ActorId member : tables_.members(id)) {
    if (!is_started(tables_.actor(member)->phase)) continue;
    commit(command::GroupWaits{id, before + "its actors are ending where it was, " +
                                       describe(tables_.actor(member)->spec) + " for one"});
    return Placing::kUnderWay;
  }
  auto place = scheduler_->place_group(group->spec);
  if (!place.ok() && place.status().code() == ErrorCode::kResourceExhausted) {
    commit(command::GroupWaits{id, before + place.status().message()});
    return Placing::kNoRoom;
  }
  if (!place.ok()) {
    drop_group(id, place.status());
    return Placing::kUnderWay;
  }
  Preparation preparation{++arrivals_, *std::move(place), {}};
  const auto holdings = holdings_of(group->spec, preparation.place.nodes);
  for (const auto& [node, resources] : holdings) preparation.asked.insert(node);
  const std::uint64_t attempt = preparation.attempt;
  preparations_.emplace(id, std::move(preparation));
  commit(command::GroupWaits{id, before + "its nodes are asked to hold its bundles"});
  for (const auto& [node, resources] : holdings)
    reservations_.prepare(node, {id, attempt}, resources);
  return Placing::kUnderWay;
}

void Head::release_everywhere(GroupId id, const std::vector<NodeId>& nodes) {
  for (NodeId node : std::set<NodeId>(nodes.begin(), nodes.end())) {
    if (tables_.nodes().contains(node)) reservations_.release(node, id);
  }
}

void Head::on_reserved(NodeId node, const std::vector<ReservationSender::Attempt>& asked,
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
    again = again || !tables_.members(group).empty();
  }
  if (again) place_pending();
}

void Head::on_refused(GroupId id, NodeId node, const std::string& why) {
  const std::string text = "node " + node.short_hex() + " refused to hold its bundles: " + why;
  LOG(warn, "{}: {}", describe(tables_.group(id)->spec), text);
  stop_preparing(id);
  commit(command::GroupWaits{id, text});
  if (!tables_.nodes().contains(node)) return;
  scheduler_->set_open(node, false);
  closed_nodes_[node] = now_() + kRefusalPause;
}

void Head::stop_preparing(GroupId id) {
  auto found = preparations_.find(id);
  if (found == preparations_.end()) return;
  release_everywhere(id, found->second.place.nodes);
  scheduler_->remove_group(id);
  preparations_.erase(found);
}

void Head::open_nodes() {
  bool opened = false;
  for (auto closed = closed_nodes_.begin(); closed != closed_nodes_.end();) {
    const bool is_over = closed->second <= now_();
    if (is_over) scheduler_->set_open(closed->first, !ends_);
    opened = opened || is_over;
    closed = is_over ? closed_nodes_.erase(closed) : std::next(closed);
  }
  if (opened) place_pending();
}

// -- The second phase: it is placed once that is recorded, and the nodes are told

void Head::on_prepared(GroupId id) {
  auto preparation = preparations_.extract(id);
  const std::vector<NodeId> nodes = preparation.mapped().place.nodes;
  commit(command::GroupPlaced{id, std::move(preparation.mapped().place)});
  for (NodeId node : std::set<NodeId>(nodes.begin(), nodes.end())) reservations_.commit(node, id);
  unqueue_group(id);
  for (ControlAnswerer& answer : group_waiters_.take(id)) answer(ControlAnswer{*tables_.group(id)});
}

/// A node has come back over a new connection, and has dropped what was not committed: it is told
/// all that it is to hold.
void Head::renew_reservations(NodeId node) {
  for (GroupId id : groups_prepared_on(node)) stop_preparing(id);
  std::vector<control::Holding> holdings;
  for (GroupId id : tables_.placed_on(node)) {
    const GroupState& group = *tables_.group(id);
    holdings.push_back({id, holdings_of(group.spec, group.nodes).at(node)});
  }
  reservations_.renew(node, std::move(holdings));
}

// -- The end

void Head::drop_group(GroupId id, const Status& why) {
  std::vector<ActorId> waiting;
  std::vector<ActorId> standing;
  for (ActorId actor : tables_.members(id)) {
    if (tables_.actor(actor)->phase == ActorPhase::kPending)
      waiting.push_back(actor);
    else
      standing.push_back(actor);  // what it stands on is given to others once it has ended
  }
  for (ActorId actor : standing) {
    commit(command::ActorEnds{actor});
    stop_actor(*tables_.actor(actor), std::chrono::milliseconds(0),
               "its placement group is gone: " + why.message());
  }
  stop_preparing(id);
  release_everywhere(id, std::vector<NodeId>(tables_.group(id)->nodes));
  scheduler_->remove_group(id);
  unqueue_group(id);
  commit(command::RemoveGroup{id});
  for (ControlAnswerer& answer : group_waiters_.take(id)) answer(why);
  for (ActorId actor : waiting) {
    const ActorRecord* record = tables_.actor(actor);
    if (!record || record->phase != ActorPhase::kPending) continue;  // its owner's end has ended it
    DeathCause cause = cause_of("its placement group is gone: " + why.message());
    actor_dead(actor, cause, Status(why.code(), cause.text));
  }
}

std::set<GroupId> Head::tear_groups(NodeId lost, const std::string& text) {
  std::set<GroupId> torn = tables_.placed_on(lost);
  for (GroupId id : groups_prepared_on(lost)) stop_preparing(id);
  for (GroupId id : torn) tear_group(id, text, kEndGrace);
  reservations_.forget(lost);
  closed_nodes_.erase(lost);
  return torn;
}

void Head::tear_group(GroupId id, const std::string& text, std::chrono::milliseconds grace) {
  const GroupState& group = *tables_.group(id);
  LOG(warn, "{} is placed anew as a whole: {}", describe(group.spec), text);
  release_everywhere(id, group.nodes);
  scheduler_->remove_group(id);
  commit(command::GroupTorn{id, "it has lost its place and is placed anew as a whole: " + text});
  queue_group(id, Deadline::max());
  for (ActorId actor : tables_.members(id)) {
    const ActorRecord& record = *tables_.actor(actor);
    // Those of the lost node have no process to stop.
    if (is_started(record.phase) && tables_.nodes().contains(record.node))
      stop_torn(record, text, grace);
  }
}

/// It goes with its gang.
void Head::stop_torn(const ActorRecord& record, const std::string& text,
                     std::chrono::milliseconds grace) {
  std::string reason = "its placement group is placed anew as a whole: " + text;
  if (may_restart(record)) return stop_actor(record, grace, std::move(reason), true);
  const bool is_first_start = record.phase == ActorPhase::kStarting && record.restarts == 0;
  reason += is_first_start ? "; the actor was being built, and its creator may ask again"
                           : "; the actor has no restart left (ActorOptions::max_restarts)";
  stop_actor(record, std::chrono::milliseconds(0), std::move(reason));
}

}  // namespace runtime
