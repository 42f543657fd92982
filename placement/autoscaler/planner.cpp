#include "placement/autoscaler/planner.h"

#include <algorithm>
#include <cstdio>

namespace placement {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kNotesMax = 50;
// A node that has joined and is lost within this time counts as one that failed to start.
constexpr auto kEarly = std::chrono::minutes(1);
// The head knows a node that was removed until its lease is over; one that is there for longer was
// not removed.
constexpr auto kGoneGrace = std::chrono::minutes(1);
// A node that is drained has gone this long after its time, or does not go.
constexpr auto kLeaveGrace = std::chrono::seconds(5);
// The next attempt to ask the head.
constexpr auto kAskAgain = std::chrono::seconds(1);

std::string seconds(milliseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(time.count()) / 1000);
  return text;
}

milliseconds between(runtime::Deadline from, runtime::Deadline to) {
  return std::chrono::duration_cast<milliseconds>(to - from);
}

std::string label_of(const runtime::NodeUse& use, std::string_view label) {
  auto found = use.info.labels.find(std::string(label));
  return found == use.info.labels.end() ? "" : found->second;
}

/// Returns the smaller amount of each resource.
Resources smaller(const Resources& a, const Resources& b) {
  runtime::ResourceMap amounts = a.to_map();
  const runtime::ResourceMap others = b.to_map();
  for (auto& [name, amount] : amounts)
    amount = std::min(amount, others.contains(name) ? others.at(name) : 0.0);
  auto least = Resources::from_map(amounts);
  return least.ok() ? *least : a;
}

constexpr const char* kMemory = "memory";

Resources memory_alone(double bytes) {
  auto memory = Resources::from_map({{kMemory, bytes}});
  return memory.ok() ? *memory : Resources();
}

bool is_going(const NodePlanner::Node& node) {
  return node.phase == NodePhase::kRetiring || node.phase == NodePhase::kRemoving;
}
bool is_coming(const NodePlanner::Node& node) {
  return node.phase == NodePhase::kWanted || node.phase == NodePhase::kStarting;
}

std::string name_of(const NodePlanner::Node& node) {
  return "node " + node.id + " (" + std::string(to_string(node.capacity)) + ")";
}

}  // namespace

NodePlanner::NodePlanner(AutoscalerConfig config,
                         std::function<std::string(const std::string&)> make_id)
    : config_(std::move(config)), make_id_(std::move(make_id)) {}

void NodePlanner::restore(std::vector<NodeRecord> records, Time now) {
  for (NodeRecord& record : records) {
    Node node;
    static_cast<NodeRecord&>(node) = std::move(record);
    node.since = now;
    node.restored = true;
    const std::string id = node.id;
    nodes_.emplace(id, std::move(node));
  }
}

std::vector<NodeRecord> NodePlanner::records() const {
  std::vector<NodeRecord> all;
  for (const auto& [id, node] : nodes_) all.push_back(node);
  return all;
}

const NodePlanner::Health* NodePlanner::health(const std::string& type, Capacity capacity) const {
  auto found = health_.find({type, capacity});
  return found == health_.end() ? nullptr : &found->second;
}

PlanActions NodePlanner::step(const runtime::Demand& demand, Time now) {
  holding_back_.clear();
  observe(demand, now);
  give_up_late(now);
  plan_additions(demand, now);
  plan_removals(now);
  return pending_actions(now);
}

// -- What there is

void NodePlanner::observe(const runtime::Demand& demand, Time now) {
  others_ = 0;
  std::erase_if(gone_, [&](const auto& entry) { return now - entry.second > 10 * kGoneGrace; });
  std::set<std::string> seen;
  for (const runtime::NodeUse& use : demand.nodes) {
    const std::string id = label_of(use, kAutoscalerIdLabel);
    if (id.empty() || !seen.insert(id).second) {
      ++others_;
      continue;
    }
    auto gone = gone_.find(id);
    if (!nodes_.contains(id) && gone != gone_.end() && now - gone->second <= kGoneGrace) {
      ++others_;
      continue;
    }
    if (!nodes_.contains(id)) {
      Node node;
      node.id = id;
      node.type = label_of(use, kNodeTypeLabel);
      node.capacity = label_of(use, kCapacityLabel) == to_string(Capacity::kSpot)
                          ? Capacity::kSpot
                          : Capacity::kOnDemand;
      const bool again = gone != gone_.end();
      node.node = use.info.node;
      enter(node, again ? NodePhase::kRemoving : NodePhase::kJoined,
            again ? "it is still in the cluster though it was removed" : "found in the cluster",
            now);
      note(decisions_, name_of(node) + ": " + node.reason, now);
      nodes_.emplace(id, std::move(node));
    }
    observe_node(use, now);
  }
  for (auto& [id, node] : nodes_) {
    if (seen.contains(id) ||
        (node.phase != NodePhase::kJoined && node.phase != NodePhase::kRetiring))
      continue;
    if (node.phase == NodePhase::kJoined && node.asked)
      continue;  // the provider has not even answered yet
    last_change_ = now;
    if (node.phase == NodePhase::kJoined) {
      const auto lived = now - node.since;
      const bool drained = node.drains;
      const runtime::Status why = runtime::unavailable(
          "it left the cluster after " + seconds(std::chrono::duration_cast<milliseconds>(lived)) +
          (drained ? ", " + node.busy : ""));
      if (lived < kEarly && !drained)
        failed(node, why, now);
      else
        note(failures_, name_of(node) + ": " + why.message(), now);
      note_spot_failure(node, false, now);
    }
    enter(node, NodePhase::kRemoving,
          node.phase == NodePhase::kRetiring ? std::string(node.reason) : "it has left the cluster",
          now);
  }
}

void NodePlanner::observe_node(const runtime::NodeUse& use, Time now) {
  Node& node = nodes_.at(label_of(use, kAutoscalerIdLabel));
  // One that was given up before it joined, and is not being removed at this moment, may have got
  // work already.
  const bool is_late = node.phase == NodePhase::kRemoving && node.node.is_none() && !node.asked;
  if (node.phase == NodePhase::kRemoving && !is_late) return;
  if (is_coming(node) || is_late) {
    const bool asked = node.asked;  // the provider will still answer
    note(decisions_, name_of(node) + " has joined after " + seconds(between(node.since, now)), now);
    enter(node, NodePhase::kJoined, node.reason, now);
    node.asked = asked;
    auto known = health_.find({node.type, node.capacity});
    if (known != health_.end()) known->second.failures = 0, known->second.not_before = Time::min();
    const NodeType* type = config_.type(node.type);
    auto has = Resources::from_map(use.info.resources);
    if (type && has.ok()) {
      if (has->covers(type->resources)) {
        really_.erase(node.type);
      } else {
        really_[node.type] = smaller(type->resources, *has);
        note(failures_,
             name_of(node) + " has less than node type '" + node.type + "' says; it lacks " +
                 has->missing(type->resources),
             now);
      }
    }
  }
  if (auto memory = use.info.resources.find(kMemory); memory != use.info.resources.end())
    memory_[node.type] = memory->second;
  node.node = use.info.node;
  const bool used_meanwhile = use.last_placed != node.last_placed;
  node.last_placed = use.last_placed;
  node.drains = use.is_leaving();
  node.busy = use.info.drain ? "drained: " + use.info.drain->reason : use.describe();
  if (!use.is_idle() || use.is_leaving())
    node.idle_since.reset();
  else if (!node.idle_since || used_meanwhile)
    node.idle_since = now;
}

void NodePlanner::give_up_late(Time now) {
  for (auto& [id, node] : nodes_) {
    if (node.leaves_by && *node.leaves_by <= now)
      enter(node, NodePhase::kRemoving, std::string(node.reason), now);
    if (!is_coming(node) || node.asked || now - node.since <= config_.start_timeout) continue;
    failed(node,
           runtime::deadline_exceeded("it has not joined within " + seconds(config_.start_timeout)),
           now);
    note_spot_failure(node, false, now);
    enter(node, NodePhase::kRemoving, "it has not joined in time", now);
  }
}

// -- More

std::size_t NodePlanner::count_of(const std::string& type) const {
  return static_cast<std::size_t>(std::count_if(
      nodes_.begin(), nodes_.end(), [&](const auto& entry) { return entry.second.type == type; }));
}

TypeOffer NodePlanner::offer_of(const NodeType& type, Time now) const {
  TypeOffer offer;
  offer.type = type;
  if (auto really = really_.find(type.name); really != really_.end())
    offer.type.resources = really->second;
  // A node has memory though its type does not say how much: any amount, until one has joined.
  if (type.resources.units(kMemory) == 0) {
    auto memory = memory_.find(type.name);
    offer.type.resources +=
        memory_alone(memory == memory_.end() ? runtime::kResourceAmountMax : memory->second);
  }
  const std::size_t count = count_of(type.name);
  offer.room = type.max_nodes > count ? type.max_nodes - count : 0;
  for (const auto& [id, node] : nodes_) {
    if (node.type == type.name && !is_going(node))
      ++(node.capacity == Capacity::kSpot ? offer.spot : offer.on_demand);
  }
  const auto closed = [&](Capacity capacity) -> std::string {
    const Health* known = health(type.name, capacity);
    if (!known || known->not_before <= now) return "";
    return "node type '" + type.name + "' (" + std::string(to_string(capacity)) + ") has failed " +
           std::to_string(known->failures) + " times, the next attempt is in " +
           seconds(between(now, known->not_before)) + "; last: " + known->last_failure;
  };
  offer.spot_closed = closed(Capacity::kSpot);
  offer.on_demand_closed = closed(Capacity::kOnDemand);
  const Health* spot = health(type.name, Capacity::kSpot);
  offer.stands_in = spot && spot->stands_in_until > now;
  if (offer.stands_in && offer.spot_closed.empty()) {
    offer.spot_closed = "spot nodes of type '" + type.name +
                        "' are short; they are tried again in " +
                        seconds(between(now, spot->stands_in_until));
  }
  return offer;
}

struct NodePlanner::Additions {
  PackInput input;
  std::vector<std::string> ids;  // of the pool; empty: not ours
  std::vector<NewNode> wanted;

  void count(TypeOffer& offer, Capacity capacity) {
    --offer.room;
    --input.room;
    ++(capacity == Capacity::kSpot ? offer.spot : offer.on_demand);
  }
};

void NodePlanner::plan_additions(const runtime::Demand& demand, Time now) {
  Additions planned = additions(demand, now);
  keep_type_minima(planned);
  place_demand(demand, planned);
  keep_cluster_minimum(planned);
  if (planned.wanted.empty()) return;
  if (last_up_ + config_.up_cooldown > now) {
    holding_back_.push_back(std::to_string(planned.wanted.size()) +
                            " additions wait for the end of the cool-down, in " +
                            seconds(between(now, last_up_ + config_.up_cooldown)));
    return;
  }
  for (const NewNode& node : planned.wanted)
    add(config_.types[node.offer].name, node.capacity, node.reason, now);
  last_up_ = last_change_ = now;
}

NodePlanner::Additions NodePlanner::additions(const runtime::Demand& demand, Time now) const {
  Additions planned;
  PackInput& input = planned.input;
  input.nodes_max = config_.max_nodes;
  input.room = config_.max_nodes > total() ? config_.max_nodes - total() : 0;
  for (const runtime::NodeUse& use : demand.nodes) {
    auto ours = nodes_.find(label_of(use, kAutoscalerIdLabel));
    if (use.is_leaving() || (ours != nodes_.end() && ours->second.phase != NodePhase::kJoined))
      continue;
    auto available = Resources::from_map(use.info.available);
    if (!available.ok()) continue;
    input.pool.push_back({*available, use.info.labels});
    planned.ids.push_back(ours == nodes_.end() ? "" : ours->first);
  }
  for (const auto& [id, node] : nodes_) {
    const NodeType* type = config_.type(node.type);
    if (!is_coming(node) || !type) continue;
    input.pool.push_back({offer_of(*type, now).type.resources, type->labels_of(id, node.capacity)});
    planned.ids.push_back(id);
  }
  for (const NodeType& type : config_.types) input.offers.push_back(offer_of(type, now));
  return planned;
}

bool NodePlanner::take(Additions& planned, std::size_t index, const std::string& reason) {
  TypeOffer& offer = planned.input.offers[index];
  const Capacity capacity = offer.next_capacity();
  const std::string& closed =
      capacity == Capacity::kSpot ? offer.spot_closed : offer.on_demand_closed;
  if (offer.room == 0 || planned.input.room == 0) return false;
  if (!closed.empty()) return holding_back_.push_back(reason + ": " + closed), false;
  planned.wanted.push_back({index, capacity, reason});
  planned.input.pool.push_back({offer.type.resources, offer.type.labels_of("", capacity)});
  planned.count(offer, capacity);
  return true;
}

// Before what waits is placed: what has to be there in any case can take it, too.
void NodePlanner::keep_type_minima(Additions& planned) {
  for (std::size_t i = 0; i < config_.types.size(); ++i) {
    const NodeType& type = config_.types[i];
    const TypeOffer& offer = planned.input.offers[i];
    const std::string reason =
        "for min_nodes of '" + type.name + "', " + std::to_string(type.min_nodes);
    while (offer.spot + offer.on_demand < type.min_nodes && take(planned, i, reason)) {
    }
  }
}

void NodePlanner::place_demand(const runtime::Demand& demand, Additions& planned) {
  PackResult packed = pack(demand, planned.input);
  demand_ = std::move(packed.demand);
  needed_.clear();
  for (std::size_t n = 0; n < planned.ids.size(); ++n) {
    if (packed.used[n] && !planned.ids[n].empty()) needed_.insert(planned.ids[n]);
  }
  for (NewNode& node : packed.add) {
    planned.count(planned.input.offers[node.offer], node.capacity);
    planned.wanted.push_back(std::move(node));
  }
}

void NodePlanner::keep_cluster_minimum(Additions& planned) {
  const auto staying = static_cast<std::size_t>(std::count_if(
      nodes_.begin(), nodes_.end(), [](const auto& entry) { return !is_going(entry.second); }));
  const std::string reason = "for min_nodes, " + std::to_string(config_.min_nodes);
  for (std::size_t i = 0; i < config_.types.size(); ++i) {
    while (others_ + staying + planned.wanted.size() < config_.min_nodes &&
           take(planned, i, reason)) {
    }
  }
}

void NodePlanner::add(const std::string& type, Capacity capacity, const std::string& reason,
                      Time now) {
  Node node;
  node.id = make_id_(type);
  node.type = type;
  node.capacity = capacity;
  enter(node, NodePhase::kWanted, reason, now);
  note(decisions_, "add " + name_of(node) + " " + reason, now);
  const std::string id = node.id;
  const bool is_new = nodes_.emplace(id, std::move(node)).second;
  CHECK(is_new);
}

// -- Less

void NodePlanner::plan_removals(Time now) {
  std::vector<Node*> idle;
  for (auto& [id, node] : nodes_) {
    if (node.phase == NodePhase::kJoined && !node.asked && node.idle_since && !needed_.contains(id))
      idle.push_back(&node);
  }
  std::sort(idle.begin(), idle.end(), [](const Node* a, const Node* b) {
    return *a->idle_since != *b->idle_since ? *a->idle_since < *b->idle_since : a->id < b->id;
  });
  std::map<std::string, std::size_t> staying;
  std::size_t all = others_;
  for (const auto& [id, node] : nodes_) {
    if (is_going(node)) continue;
    ++staying[node.type];
    ++all;
  }
  bool cools_down = false;
  const bool is_calm = last_change_ + config_.down_cooldown <= now;
  for (Node* node : idle) {
    const NodeType* type = config_.type(node->type);
    if (all <= config_.min_nodes || (type && staying[node->type] <= type->min_nodes)) continue;
    const bool too_many =
        all > config_.max_nodes || (type && staying[node->type] > type->max_nodes);
    const auto idle_for = now - *node->idle_since;
    if (!too_many && idle_for < config_.idle_timeout) continue;
    if (!too_many && !is_calm) {
      cools_down = true;
      continue;
    }
    --staying[node->type];
    --all;
    enter(*node, NodePhase::kRetiring,
          too_many ? "there are more nodes than max_nodes"
                   : "idle for " + seconds(std::chrono::duration_cast<milliseconds>(idle_for)),
          now);
    note(decisions_, "remove " + name_of(*node) + ": " + node->reason, now);
    last_change_ = now;
  }
  if (cools_down)
    holding_back_.push_back("removals wait for the end of the cool-down, in " +
                            seconds(between(now, last_change_ + config_.down_cooldown)));
}

// -- Actions and what becomes of them

PlanActions NodePlanner::pending_actions(Time now) {
  PlanActions actions;
  for (auto& [id, node] : nodes_) {
    if (node.asked || node.not_before > now) continue;
    switch (node.phase) {
      case NodePhase::kWanted: actions.add.push_back(node); break;
      case NodePhase::kRetiring: actions.retire.push_back(node); break;
      case NodePhase::kRemoving: actions.remove.push_back(node); break;
      case NodePhase::kStarting:
      case NodePhase::kJoined: continue;
    }
    node.asked = true;
    node.asked_at = now;
  }
  return actions;
}

void NodePlanner::added(const std::string& id, const runtime::Status& outcome, Time now) {
  auto found = nodes_.find(id);
  if (found == nodes_.end()) return;
  Node& node = found->second;
  node.asked = false;
  if (node.phase != NodePhase::kWanted) return;  // it has joined meanwhile
  if (outcome.ok()) {
    node.phase = NodePhase::kStarting;
    return;
  }
  const bool is_short = outcome.code() == runtime::ErrorCode::kResourceExhausted;
  failed(node, outcome, now);
  note_spot_failure(node, is_short, now);
  if (is_short && !node.restored)
    nodes_.erase(found);  // there is none to be removed
  else
    enter(node, NodePhase::kRemoving, "it could not be added", now);
}

void NodePlanner::retired(const std::string& id, const runtime::Status& outcome, Time now) {
  auto found = nodes_.find(id);
  if (found == nodes_.end() || found->second.phase != NodePhase::kRetiring) return;
  Node& node = found->second;
  switch (outcome.code()) {
    case runtime::ErrorCode::kOk:
      node.leaves_by = now + kDrainTime + kLeaveGrace;
      return;  // it is seen to go
    case runtime::ErrorCode::kNotFound:
      return enter(node, NodePhase::kRemoving, std::string(node.reason), now);
    case runtime::ErrorCode::kResourceExhausted: {
      note(decisions_, name_of(node) + " stays: " + outcome.message(), now);
      enter(node, NodePhase::kJoined, "it has got work", now);
      node.idle_since.reset();
      return;
    }
    default: {  // whether the head has done it is not known
      node.asked = false;
      node.not_before = now + kAskAgain;
    }
  }
}

void NodePlanner::removed(const std::string& id, const runtime::Status& outcome, Time now) {
  auto found = nodes_.find(id);
  if (found == nodes_.end() || found->second.phase != NodePhase::kRemoving) return;
  Node& node = found->second;
  if (outcome.ok()) {
    note(decisions_, name_of(node) + " is removed: " + node.reason, now);
    gone_[id] = now;
    nodes_.erase(found);
    return;
  }
  node.asked = false;
  node.not_before = now + back_off(++node.failures);
  note(failures_, name_of(node) + " could not be removed: " + outcome.message(), now);
}

void NodePlanner::listed(const std::vector<std::string>& ids, Time asked, Time now) {
  const std::set<std::string> there(ids.begin(), ids.end());
  for (const std::string& id : there) {
    if (nodes_.contains(id) || gone_.contains(id)) continue;
    Node node;
    node.id = id;
    node.type = id.substr(0, id.rfind('-'));  // as make_id() begins
    enter(node, NodePhase::kRemoving, "the provider has it, and no record does", now);
    note(decisions_, "remove " + name_of(node) + ": " + node.reason, now);
    nodes_.emplace(id, std::move(node));
  }
  for (auto& [id, node] : nodes_) {
    // What the provider was asked for after it began to list may be missing there.
    if (node.phase != NodePhase::kStarting || there.contains(id) || node.asked_at >= asked)
      continue;
    failed(node, runtime::unavailable("the provider has it no more, and it has not joined"), now);
    note_spot_failure(node, false, now);
    enter(node, NodePhase::kRemoving, "the provider has it no more", now);
  }
}

void NodePlanner::not_done(const PlanActions& actions) {
  for (const auto* records : {&actions.add, &actions.retire, &actions.remove}) {
    for (const NodeRecord& record : *records) {
      if (auto found = nodes_.find(record.id); found != nodes_.end()) found->second.asked = false;
    }
  }
}

void NodePlanner::enter(Node& node, NodePhase phase, const std::string& reason, Time now) {
  node.phase = phase;
  node.reason = reason;
  node.since = now;
  node.asked = false;
  node.not_before = Time::min();
  node.leaves_by.reset();
  node.failures = 0;
}

milliseconds NodePlanner::back_off(std::uint32_t failures) const {
  milliseconds pause = config_.retry_first;
  for (std::uint32_t i = 1; i < failures && pause < config_.retry_max; ++i) pause *= 2;
  return std::min(pause, config_.retry_max);
}

void NodePlanner::failed(const Node& node, const runtime::Status& why, Time now) {
  Health& known = health_[{node.type, node.capacity}];
  ++known.failures;
  known.not_before = now + back_off(known.failures);
  known.last_failure = why.message();
  note(failures_, name_of(node) + ": " + why.message(), now);
}

void NodePlanner::note_spot_failure(const Node& node, bool is_short, Time now) {
  const NodeType* type = config_.type(node.type);
  if (node.capacity != Capacity::kSpot || !type || type->spot.fallback.count() == 0) return;
  Health& known = health_[{node.type, Capacity::kSpot}];
  known.troubles.push_back(now);
  std::erase_if(known.troubles, [&](Time at) { return at + type->spot.window < now; });
  if (!is_short && known.troubles.size() < type->spot.failures) return;
  known.troubles.clear();
  known.stands_in_until = now + type->spot.fallback;
  note(decisions_,
       "nodes of type '" + type->name + "' on demand instead of spot for " +
           seconds(type->spot.fallback) + ": " +
           (is_short ? "the provider has no spot nodes now"
                     : "spot nodes failed or were lost " + std::to_string(type->spot.failures) +
                           " times"),
       now);
}

void NodePlanner::note(std::deque<Failure>& list, std::string text, Time now) {
  list.push_back({now, std::move(text)});
  if (list.size() > kNotesMax) list.pop_front();
}

}  // namespace placement
