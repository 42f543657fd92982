#include "runtime/head/head_overview.h"

#include <string>
#include <utility>

#include "runtime/head/actor_pages.h"

namespace runtime {

void HeadOverview::serve(const HeadCall&, control::QueryCluster&, ControlAnswerer answer) {
  answer(ControlAnswer{cluster_state()});
}

void HeadOverview::serve(const HeadCall&, control::ReadHead&, ControlAnswerer answer) {
  answer(ControlAnswer{ObserveAnswer{numbers()}});
}

void HeadOverview::serve(const HeadCall&, control::ListActors& body, ControlAnswerer answer) {
  auto page = actor_page(context_.tables, body);
  page.ok() ? answer(ControlAnswer{ObserveAnswer{*std::move(page)}}) : answer(page.status());
}

ClusterState HeadOverview::cluster_state() const {
  const ClusterTables& tables = context_.tables;
  ClusterState state;
  state.cluster = cluster_;
  for (const auto& [id, info] : tables.nodes().all()) state.nodes.push_back(sources_.shown(info));
  for (const auto& [id, record] : tables.actors().all()) state.actors.push_back(record.state());
  for (const auto& [id, group] : tables.groups().all()) state.groups.push_back(group);
  for (const auto& [id, record] : tables.jobs().all()) {
    state.jobs.push_back(record.info);
    state.jobs.back().end.output_tail.clear();  // long, and to be had by QueryJob
  }
  return state;
}

Numbers HeadOverview::numbers() const {
  const ClusterTables& tables = context_.tables;
  Numbers numbers{{"nodes", static_cast<double>(tables.nodes().all().size())},
                  {"actors_waiting", static_cast<double>(sources_.actors_waiting())}};
  for (ActorPhase phase :
       {ActorPhase::kPending, ActorPhase::kStarting, ActorPhase::kAlive, ActorPhase::kDead}) {
    numbers["actors_" + std::string(to_string(phase))] = 0;
  }
  double restarts = 0;
  for (const auto& [id, record] : tables.actors().all()) {
    ++numbers["actors_" + std::string(to_string(record.phase))];
    restarts += record.restarts;
  }
  numbers["actor_restarts"] = restarts;
  numbers["nodes_draining"] = static_cast<double>(sources_.nodes_draining());
  numbers["drains"] = static_cast<double>(sources_.drains_begun());
  double running = 0, placed = 0;
  for (const auto& [id, record] : tables.jobs().all()) running += record.info.running;
  numbers["jobs_running"] = running;
  numbers["jobs_ended"] = static_cast<double>(tables.jobs().all().size()) - running;
  for (const auto& [id, group] : tables.groups().all()) placed += group.placed;
  numbers["groups_placed"] = placed;
  numbers["groups_pending"] = static_cast<double>(tables.groups().all().size()) - placed;
  return numbers;
}

}  // namespace runtime
