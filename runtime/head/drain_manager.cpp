#include "runtime/head/drain_manager.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/core/log.h"
#include "runtime/head/head_words.h"
#include "runtime/head/node_contents.h"

namespace runtime {

namespace {

constexpr std::size_t kReasonMax = 200;  // characters
// Between two attempts to have the rest of a node's objects taken over.
constexpr std::chrono::milliseconds kRoundPause{500};
constexpr std::chrono::seconds kRoundTime{60};
// Before the deadline: what is still there then had better be taken over now.
constexpr std::chrono::milliseconds kLastCallMax{5000};
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

}  // namespace

DrainManager::DrainManager(const HeadContext& context, ActorControl& actors, GroupControl& groups,
                           PublishedObjects& published, Hooks hooks)
    : context_(context),
      groups_(groups),
      hooks_(std::move(hooks)),
      drained_(context),
      work_(context, drained_, actors, groups),
      published_(context, drained_, published, [this](NodeId node) { advance(node); }),
      rounds_(context, [this](NodeId node) { advance(node); }) {}

void DrainManager::serve(const HeadCall& call, control::DrainNode& body, ControlAnswerer answer) {
  const NodeInfo* node = context_.tables.nodes().find(body.node);
  if (!node) {
    const NodeDeparture* departure = context_.tables.nodes().departure(body.node);
    return answer(not_found(departure ? departure->why : "no node has the id " + body.node.hex()));
  }
  const std::string name = "node " + body.node.short_hex() + " (" + node->address + ")";
  if (node->is_head) {
    return answer(invalid_argument(name +
                                   " hosts the head, without which there is no cluster: it cannot "
                                   "be drained. Drain the others, or end the cluster with "
                                   "`starling stop --address " +
                                   node->address + "`"));
  }
  if (body.time.count() <= 0)
    return answer(
        invalid_argument(name + " is to be drained: a deadline above zero is needed, like 30s"));
  if (body.if_idle) {
    const NodeUse use = hooks_.use_of(body.node);
    if (!use.is_idle()) return answer(resource_exhausted(name + " is not idle: " + use.describe()));
  }
  const Deadline deadline = context_.now() + body.time;
  // An earlier end counts: a node that is to go in ten minutes may be preempted in one.
  if (drained_.contains(body.node) && drained_.deadline(body.node) <= deadline)
    return answer(ControlAnswer{});
  begin(body.node, tidy(std::move(body.reason)), body.time);
  LOG(info, "{} is drained ({}), asked by node {}: it leaves within {} ms", name,
      node->drain->reason, call.from.short_hex(), body.time.count());
  answer(ControlAnswer{});
  advance(body.node);
}

void DrainManager::begin(NodeId node, std::string reason, std::chrono::milliseconds time) {
  context_.commit(command::NodeDrains{
      node, NodeDrain{std::move(reason), time,
                      std::chrono::milliseconds(unix_milliseconds()) + time, 0, ""}});
  resume(node, time);
  for (const auto& [id, info] : context_.tables.nodes().all()) tell(id, node);
  work_.ask_again(node);          // those that were on their way already have less time now
  groups_.place_elsewhere(node);  // what is not placed yet, from the beginning
  hooks_.nodes_changed();
}

void DrainManager::resume(NodeId node, std::chrono::milliseconds left) {
  context_.scheduler.begin_drain(node);
  ++begun_;
  const Deadline deadline = context_.now() + left;
  drained_.set(node, deadline);
  rounds_.cancel(node);
  Drain& drain = drains_[node];
  drain.last_call = deadline - std::min(left / 4, kLastCallMax);
  drain.next_round = Deadline::min();
  drain.called_last = false;
  drain.notified = false;
}

void DrainManager::restored() {
  for (const auto& [id, info] : context_.tables.nodes().all()) {
    if (!info.drain) continue;
    // However the machine's clock was set meanwhile, it has no more time than it was given.
    resume(id, std::clamp(info.drain->deadline - std::chrono::milliseconds(unix_milliseconds()),
                          std::chrono::milliseconds(0), info.drain->left));
  }
  for (const auto& [node, drain] : drains_) work_.keep_places(node);
}

void DrainManager::tell(NodeId to, NodeId node) {
  NodeDrain drain = *context_.tables.nodes().find(node)->drain;
  drain.left = drained_.left(node);
  context_.links.event(to, control::NodeDrains{node, std::move(drain)});
}

void DrainManager::node_connected(NodeId node) {
  for (const auto& [id, drain] : drains_) tell(node, id);
  auto own = drains_.find(node);
  if (own == drains_.end()) return;
  own->second.notified = false;
  work_.ask_again(node);  // what it was asked before, an earlier head or connection has taken along
  advance(node);
}

std::string DrainManager::node_lost(NodeId node, const std::string& why) {
  const NodeInfo& info = *context_.tables.nodes().find(node);
  const std::string name = "node " + node.short_hex() + " (" + info.address + ") ";
  auto drain = drains_.find(node);
  if (drain == drains_.end()) return name + "is gone: " + why;
  const std::string text = name + "was drained (" + info.drain->reason + ") and has left" +
                           (drain->second.notified ? "" : " before its deadline: " + why);
  work_.mark_moving(node);
  drains_.erase(drain);
  drained_.erase(node);
  work_.forget(node);
  published_.forget(node);
  rounds_.forget(node);
  return text;
}

void DrainManager::advance() {
  std::vector<NodeId> nodes;
  for (const auto& [node, drain] : drains_) nodes.push_back(node);
  for (const NodeId& node : nodes) advance(node);
}

void DrainManager::advance(NodeId node) {
  auto found = drains_.find(node);
  if (found == drains_.end() || found->second.notified) return;
  Drain& drain = found->second;
  const Deadline now = context_.now();
  const Deadline deadline = drained_.deadline(node);
  if (now >= deadline) return leave(node, "at its deadline");
  work_.move(node);
  published_.move(node);
  const bool empty = is_empty(context_.tables, node);
  if (!empty) drain.emptied = false;
  const bool has_emptied = empty && !drain.emptied;
  const bool is_over = !rounds_.is_under_way(node);
  if (is_over && drain.emptied && rounds_.failed(node) == 0 && !published_.is_moving(node) &&
      !published_.has_sole_copies(node))
    return leave(node, "empty");
  // A first round early, so that most is done when it matters; one when nothing runs there any
  // more; and a last call. None of these waits for a process that does not answer the one before.
  const bool is_last_call = !drain.called_last && now >= drain.last_call;
  if (!has_emptied && !is_last_call && (!is_over || now < drain.next_round)) return;
  drain.called_last = drain.called_last || is_last_call;
  drain.emptied = empty;
  drain.next_round = empty ? now + kRoundPause : drain.called_last ? deadline : drain.last_call;
  take_over_objects(node);
}

void DrainManager::take_over_objects(NodeId node) {
  const auto left = drained_.left(node);
  rounds_.begin(
      node, std::clamp(drains_.at(node).called_last ? left : left / 2, std::chrono::milliseconds(1),
                       std::chrono::milliseconds(kRoundTime)));
}

void DrainManager::leave(NodeId node, const std::string& how) {
  drains_.at(node).notified = true;
  const NodeInfo& info = *context_.tables.nodes().find(node);
  const std::string kept = how == "empty" ? "" : what_keeps(context_.tables, node);
  LOG(info, "node {} ({}) is drained ({}) and leaves, {}{}", node.short_hex(), info.address,
      info.drain->reason, how, kept.empty() ? "" : ", and still had " + kept);
  work_.mark_moving(node);
  control::Leave body{"node " + node.short_hex() + " was drained (" + info.drain->reason +
                      ") and has left" + (how == "empty" ? "" : " " + how)};
  context_.links.request(node, ControlRequest{{}, kLeaveTime, std::move(body)},
                         [](Result<ControlAnswer>) {});
}

NodeInfo DrainManager::shown(const NodeInfo& info) const {
  NodeInfo node = info;
  node.available = context_.scheduler.available(info.node);
  if (auto drain = drains_.find(info.node); drain != drains_.end() && node.drain) {
    node.drain->left = drained_.left(info.node);
    node.drain->waits_for = what_keeps(context_.tables, info.node);
    if (node.drain->waits_for.empty())
      node.drain->waits_for =
          drain->second.notified ? "the end of its process" : "its objects to be taken over";
  }
  return node;
}

Deadline DrainManager::next_tick() const {
  Deadline next = Deadline::max();
  for (const auto& [node, drain] : drains_) {
    if (drain.notified) continue;
    next = std::min(next, drained_.deadline(node));
    if (!drain.called_last) next = std::min(next, drain.last_call);
    if (!rounds_.is_under_way(node))
      next =
          std::min(next, std::max(drain.next_round, context_.now() + std::chrono::milliseconds(1)));
    next = std::min(next, published_.next_attempt(node));
  }
  return next;
}

}  // namespace runtime
