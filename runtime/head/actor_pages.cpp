#include "runtime/head/actor_pages.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

namespace runtime {

namespace {

/// Whether the actor is one of those that a filter asks for.
using Matches = std::function<bool(const ActorRecord&)>;

/// Errors: kInvalidArgument, naming the key or the value, and what there is.
Result<Matches> filter_of(const std::string& key, const std::string& value) {
  if (key == "id")
    return Matches(
        [value](const ActorRecord& record) { return record.spec.actor.hex().starts_with(value); });
  if (key == "node")
    return Matches([value](const ActorRecord& record) {
      return !record.node.is_none() && record.node.hex().starts_with(value);
    });
  if (key == "job")
    return Matches(
        [value](const ActorRecord& record) { return record.job.hex().starts_with(value); });
  if (key == "name")
    return Matches([value](const ActorRecord& record) { return record.spec.name == value; });
  if (key == "namespace")
    return Matches([value](const ActorRecord& record) { return record.spec.name_space == value; });
  if (key == "class")
    return Matches([value](const ActorRecord& record) { return record.spec.class_name == value; });
  if (key == "state") {
    for (ActorPhase phase :
         {ActorPhase::kPending, ActorPhase::kStarting, ActorPhase::kAlive, ActorPhase::kDead}) {
      if (to_string(phase) == value)
        return Matches(
            [value](const ActorRecord& record) { return to_string(record.phase) == value; });
    }
    return invalid_argument("no actor is ever '" + value +
                            "': a state is pending, starting, alive or dead");
  }
  if (key == "pid") {
    std::int32_t pid = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), pid);
    if (error != std::errc() || end != value.data() + value.size())
      return invalid_argument("pid '" + value + "' is not a number");
    return Matches([pid](const ActorRecord& record) { return record.address.pid == pid; });
  }
  return invalid_argument(
      "actors have no field '" + key +
      "' to filter by; there are id, name, namespace, class, state, node, job and pid");
}

}  // namespace

Result<ActorPage> actor_page(const ClusterTables& tables, const control::ListActors& asked) {
  std::vector<Matches> filters;
  for (const auto& [key, value] : asked.filters) {
    auto filter = filter_of(key, value);
    if (!filter.ok()) return filter.status();
    filters.push_back(*std::move(filter));
  }
  ActorPage page;
  const auto& actors = tables.actors().all();
  for (auto at = actors.upper_bound(asked.after); at != actors.end(); ++at) {
    const ActorRecord& record = at->second;
    if (!std::all_of(filters.begin(), filters.end(),
                     [&](const Matches& matches) { return matches(record); }))
      continue;
    if (page.actors.size() == asked.limit) {
      page.next = page.actors.back().actor;
      break;
    }
    page.actors.push_back(record.state());
  }
  return page;
}

}  // namespace runtime
