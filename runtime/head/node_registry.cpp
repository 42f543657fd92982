#include "runtime/head/node_registry.h"

#include <utility>

#include "runtime/core/log.h"

namespace runtime {

void NodeRegistry::serve(const HeadCall& call, control::RegisterNode& body,
                         ControlAnswerer answer) {
  const NodeId node = call.from;
  if (body.info.node != node) return answer(invalid_argument("a node registers itself only"));
  const bool known = context_.tables.nodes().contains(node);
  if (body.returns && !known) {
    return answer(cancelled("node " + node.short_hex() +
                            " has been declared dead meanwhile; what it runs has been replaced, "
                            "and it has to join as a new node"));
  }
  const ControlAnswer is_durable{std::int64_t{context_.options.durable}};
  // Also one whose first answer was lost: it chose its id itself, and runs nothing yet.
  if (known) {
    LOG(info, "node {} at {} is back", node.short_hex(), body.info.address);
    answer(is_durable);
    hooks_.returned(body);
    hooks_.connected(node);
    return hooks_.place_pending();
  }
  if (!body.replaces.is_none()) lose(body.replaces, "its machine has a new node");
  if (Status status = context_.scheduler.add_node(body.info); !status.ok()) return answer(status);
  body.info.alive = true;
  context_.commit(command::AddNode{body.info});
  LOG(info, "node {} at {} joined", node.short_hex(), body.info.address);
  answer(is_durable);
  hooks_.connected(node);
  changed();
  hooks_.place_pending();
}

void NodeRegistry::serve(const HeadCall&, control::Heartbeat&, ControlAnswerer answer) {
  answer(ControlAnswer{});
}

void NodeRegistry::serve(const HeadCall& call, control::WatchNodes& body, ControlAnswerer answer) {
  if (body.version != context_.tables.nodes().version())
    return answer(ControlAnswer{list(body.version)});
  watchers_.add({}, call.deadline, Watcher{body.version, std::move(answer)});
}

void NodeRegistry::lose(NodeId node, const std::string& why) {
  if (!context_.tables.nodes().contains(node)) return;
  const std::string text = hooks_.ends(node, why);
  LOG(warn, "{}", text);
  context_.scheduler.remove_node(node);
  context_.commit(command::RemoveNode{node, text});
  hooks_.lost(node, text);
  changed();
  hooks_.place_pending();
}

void NodeRegistry::changed() {
  for (Watcher& watcher : watchers_.take({})) watcher.answer(ControlAnswer{list(watcher.version)});
}

Status NodeRegistry::restored() {
  for (const auto& [id, info] : context_.tables.nodes().all()) {
    if (Status status = context_.scheduler.add_node(info); !status.ok()) return status;
  }
  return {};
}

control::NodeList NodeRegistry::list(std::uint64_t known) const {
  control::NodeList list{context_.tables.nodes().version(), {}};
  for (const auto& [id, info] : context_.tables.nodes().all())
    list.nodes.push_back(hooks_.shown(info));
  for (const NodeDeparture& departure : context_.tables.nodes().departures()) {
    if (known != 0 && departure.version > known) list.departed.push_back(departure);
  }
  return list;
}

void NodeRegistry::tick(Deadline now) {
  for (auto& [none, watcher] : watchers_.expire(now))
    watcher.answer(deadline_exceeded("no node has come or gone"));
}

}  // namespace runtime
