#include "runtime/head/node_table.h"

#include <algorithm>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/head/table_lookup.h"

namespace runtime {

void NodeTable::apply(const command::AddNode& c) {
  NodeInfo& added = nodes_[c.info.node] = c.info;
  added.joined_as = ++version_;
  added.drain.reset();
  changed_.note(c.info.node);
}

void NodeTable::apply(const command::RemoveNode& c) {
  auto gone = nodes_.extract(c.node);
  CHECK(!gone.empty());
  ++version_;
  const bool drained = gone.mapped().drain.has_value();
  departures_.push_back({std::move(gone.mapped()), c.why, drained, version_});
  changed_departures_.note(c.node);
  while (departures_.size() > kDeparturesKept) {
    changed_departures_.note(departures_.front().node.node);
    departures_.pop_front();
  }
  changed_.note(c.node);
}

void NodeTable::apply(const command::NodeDrains& c) {
  std::optional<NodeDrain>& drain = nodes_.at(c.node).drain;
  drain = c.drain;
  drain->version = ++version_;
  changed_.note(c.node);
}

const NodeInfo* NodeTable::find(NodeId id) const { return table_lookup::lookup(nodes_, id); }

const NodeDeparture* NodeTable::departure(NodeId id) const {
  auto found =
      std::find_if(departures_.rbegin(), departures_.rend(),
                   [&](const NodeDeparture& departure) { return departure.node.node == id; });
  return found == departures_.rend() ? nullptr : &*found;
}

// -- The journal

void NodeTable::follow() {
  changed_.follow();
  changed_departures_.follow();
}

void NodeTable::take_changes(std::vector<JournalWrite>& writes) {
  changed_.take(writes, [this](NodeId id) -> JournalWrite {
    const NodeInfo* info = find(id);
    if (!info) return {journal::key_of(id), {}};
    return {journal::key_of(id), journal::encode(journal::Node{*info})};
  });
  changed_departures_.take(writes, [this](NodeId id) -> JournalWrite {
    const NodeDeparture* known = departure(id);
    if (!known) return {journal::key_of_departure(id), {}};
    return {journal::key_of_departure(id), journal::encode(journal::Departure{*known})};
  });
}

Status NodeTable::restore(const journal::Node& entry) {
  nodes_[entry.info.node] = entry.info;
  return {};
}

Status NodeTable::restore(const journal::Departure& entry) {
  departures_.push_back(entry.departure);
  return {};
}

void NodeTable::end_restore() {
  std::sort(departures_.begin(), departures_.end(),
            [](const NodeDeparture& a, const NodeDeparture& b) { return a.version < b.version; });
}

}  // namespace runtime
