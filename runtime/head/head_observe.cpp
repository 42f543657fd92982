// The head's part in seeing what the cluster does: pages of actors, and how many there are of what.
#include <algorithm>
#include <charconv>

#include "runtime/head/head.h"

namespace runtime {

namespace {

/// Whether the actor is one of those that a filter asks for.
using Matches = std::function<bool(const ActorRecord&)>;

std::string_view phase_name(const ActorRecord& record) { return to_string(record.phase); }

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
        return Matches([value](const ActorRecord& record) { return phase_name(record) == value; });
    }
    return invalid_argument("no actor is ever '" + value +
                            "': a state is pending, starting, alive or dead");
  }
  if (key == "pid") {
    std::int32_t pid = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), pid);
    if (error != std::errc() || end != value.data() + value.size())
      return invalid_argument("pid '" + value + "' is no number");
    return Matches([pid](const ActorRecord& record) { return record.address.pid == pid; });
  }
  return invalid_argument(
      "actors have no field '" + key +
      "' to filter by; there are id, name, namespace, class, state, node, job and pid");
}

}  // namespace

void Head::on(const Call&, ObserveControl& body, ControlAnswerer answer) {
  if (std::holds_alternative<control::ReadHead>(body))
    return answer(ControlAnswer{ObserveAnswer{numbers()}});
  auto* list = std::get_if<control::ListActors>(&body);
  if (!list) return answer(unimplemented("this is asked of a node, not of the head"));
  std::vector<Matches> filters;
  for (const auto& [key, value] : list->filters) {
    auto filter = filter_of(key, value);
    if (!filter.ok()) return answer(filter.status());
    filters.push_back(*std::move(filter));
  }
  ActorPage page;
  const auto& actors = tables_.actors();
  for (auto at = actors.upper_bound(list->after); at != actors.end(); ++at) {
    const ActorRecord& record = at->second;
    if (!std::all_of(filters.begin(), filters.end(),
                     [&](const Matches& matches) { return matches(record); }))
      continue;
    if (page.actors.size() == list->limit) {
      page.next = page.actors.back().actor;
      break;
    }
    page.actors.push_back(record.state());
  }
  answer(ControlAnswer{ObserveAnswer{std::move(page)}});
}

Numbers Head::numbers() const {
  Numbers numbers{{"nodes", static_cast<double>(tables_.nodes().size())},
                  {"actors_waiting", static_cast<double>(pending_actors_.size())}};
  for (ActorPhase phase :
       {ActorPhase::kPending, ActorPhase::kStarting, ActorPhase::kAlive, ActorPhase::kDead}) {
    numbers["actors_" + std::string(to_string(phase))] = 0;
  }
  double restarts = 0;
  for (const auto& [id, record] : tables_.actors()) {
    ++numbers["actors_" + std::string(phase_name(record))];
    restarts += record.restarts;
  }
  numbers["actor_restarts"] = restarts;
  numbers["nodes_draining"] = static_cast<double>(drains_.size());
  numbers["drains"] = static_cast<double>(drains_begun_);
  double running = 0, placed = 0;
  for (const auto& [id, record] : tables_.jobs()) running += record.info.running;
  numbers["jobs_running"] = running;
  numbers["jobs_ended"] = static_cast<double>(tables_.jobs().size()) - running;
  for (const auto& [id, group] : tables_.groups()) placed += group.placed;
  numbers["groups_placed"] = placed;
  numbers["groups_pending"] = static_cast<double>(tables_.groups().size()) - placed;
  return numbers;
}

}  // namespace runtime
