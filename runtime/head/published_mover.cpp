#include "runtime/head/published_mover.h"

#include <algorithm>

#include "runtime/core/log.h"

namespace runtime {

namespace {

constexpr std::chrono::milliseconds kAttemptPause{500};

bool has_copy_on(const std::vector<ObjectLocation>& copies, NodeId node) {
  return std::any_of(copies.begin(), copies.end(),
                     [&](const ObjectLocation& copy) { return copy.node == node; });
}

}  // namespace

bool PublishedMover::is_moving(NodeId node) const {
  auto found = moves_.find(node);
  return found != moves_.end() && !found->second.under_way.empty();
}

Deadline PublishedMover::next_attempt(NodeId node) const {
  auto found = moves_.find(node);
  if (found == moves_.end() || !found->second.under_way.empty()) return Deadline::max();
  const Deadline next = found->second.next_attempt;
  return next > context_.now() ? next : Deadline::max();
}

bool PublishedMover::is_sole(const std::vector<ObjectLocation>& copies, NodeId node) const {
  const auto stays = [&](const ObjectLocation& copy) {
    return copy.node != node && !drained_.contains(copy.node) &&
           context_.tables.nodes().contains(copy.node);
  };
  return std::none_of(copies.begin(), copies.end(), stays);
}

bool PublishedMover::has_sole_copies(NodeId node) const {
  for (const auto& [name, versions] : context_.tables.published().all()) {
    for (const auto& [version, published] : versions) {
      const auto* copies = std::get_if<std::vector<ObjectLocation>>(&published.value);
      if (copies && has_copy_on(*copies, node) && is_sole(*copies, node)) return true;
    }
  }
  return false;
}

void PublishedMover::move(NodeId node) {
  for (const auto& [name, versions] : context_.tables.published().all()) {
    for (const auto& [version, published] : versions) {
      const auto* copies = std::get_if<std::vector<ObjectLocation>>(&published.value);
      if (!copies) continue;
      const auto here = std::find_if(copies->begin(), copies->end(),
                                     [&](const ObjectLocation& copy) { return copy.node == node; });
      if (here != copies->end()) move_copy({name, version}, *here, *copies);
    }
  }
}

NodeId PublishedMover::choose_target(const Version& version, Moves& moves,
                                     const std::vector<ObjectLocation>& copies) const {
  // Nodes that could not take it are asked again once all have been. So are those that have not
  // come back since the head was started.
  std::set<NodeId>& refused = moves.refused[version];
  NodeId target, again;
  for (const auto& [id, info] : context_.tables.nodes().all()) {
    if (drained_.contains(id) || has_copy_on(copies, id)) continue;
    if (again.is_none()) again = id;
    if (target.is_none() && !refused.contains(id) && context_.links.is_connected(id)) target = id;
  }
  if (!target.is_none()) return target;
  refused.clear();
  return again;
}

void PublishedMover::move_copy(const Version& version, const ObjectLocation& copy,
                               const std::vector<ObjectLocation>& copies) {
  const NodeId node = copy.node;
  Moves& moves = moves_[node];
  const NodeId target = choose_target(version, moves, copies);
  if (target.is_none() || context_.now() < moves.next_attempt ||
      !moves.under_way.insert(version).second)
    return;
  const auto time = std::max(std::chrono::milliseconds(1), drained_.left(node));
  ControlRequest request{{}, time, ObjectControl{control::AdoptObject{copy}}};
  context_.links.request(target, std::move(request),
                         [this, version, node, target](Result<ControlAnswer> adopted) {
                           on_copy_moved(version, node, target, std::move(adopted));
                         });
}

void PublishedMover::on_copy_moved(const Version& version, NodeId from, NodeId target,
                                   Result<ControlAnswer> adopted) {
  const auto& [name, number] = version;
  auto* objects = adopted.ok() ? std::get_if<ObjectControlAnswer>(&*adopted) : nullptr;
  auto* to = objects ? std::get_if<ObjectLocation>(objects) : nullptr;
  const bool is_drained = drained_.contains(from);
  if (is_drained) moves_[from].under_way.erase(version);
  const auto* versions = context_.tables.published().find(name);
  const bool is_there = versions && versions->contains(number);
  const bool stays = to && context_.tables.nodes().contains(to->node);
  if (stays && is_there)
    context_.commit(command::MoveCopy{name, number, from, *to});
  else if (stays)
    published_.drop_copies({*to});
  if (!is_drained) return;
  if (!to) {
    LOG(warn, "version {} of '{}' cannot be copied off node {}: {}", number, name.second,
        from.short_hex(), adopted.ok() ? "no answer" : adopted.status().message());
    moves_[from].refused[version].insert(target);
    moves_[from].next_attempt = context_.now() + kAttemptPause;
  }
  on_answer_(from);
}

}  // namespace runtime
