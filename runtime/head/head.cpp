#include "runtime/head/head.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace runtime {

Head::Head(ClusterId cluster, std::unique_ptr<Scheduler> scheduler, HeadLinks& links,
           std::function<Deadline()> now, HeadOptions options)
    : scheduler_(std::move(scheduler)),
      links_(links),
      now_(std::move(now)),
      options_(options),
      tokens_(
          options_.keyring, links_,
          [this](const TokenState& changed) { context_.commit(command::TokenChanged{changed}); }),
      queue_(context_, queue_hooks()),
      actors_(context_, queue_, actor_waiters_,
              {[this](const ActorRecord& record) {
                 // Its gang may have a bundle on a node that is drained, and have waited for it.
                 record.spec.bundle ? drains_.advance() : drains_.advance(record.address.node);
               },
               [this](JobId job) { jobs_.outliving_actor_died(job); }}),
      groups_(
          context_, queue_, actors_,
          [this](GroupId group, const Status& status) { group_requests_.decided(group, status); }),
      jobs_(context_, actors_, groups_, published_, [this] { queue_.place_all(); }),
      drains_(context_, actors_, groups_, published_,
              {[this] { nodes_.changed(); },
               [this](NodeId node) { return demand_.node_uses().at(node); }}),
      demand_(context_, demand_sources()),
      nodes_(context_, node_hooks()),
      overview_(context_, cluster, overview_sources()) {}

PlacementQueue::Hooks Head::queue_hooks() {
  return {
      .is_under_way = [this](GroupId group) { return groups_.is_under_way(group); },
      .place_group = [this](GroupId group) { return groups_.place(group); },
      .place_actor = [this](ActorId actor,
                            Deadline deadline) { return actors_.place(actor, deadline); },
      // What has become free is first for those that have no place at all.
      .looked_at_all = [this] { drains_.advance(); },
      .group_late = [this](GroupId group) { groups_.late(group); },
      .actor_late = [this](ActorId actor) { actors_.late(actor); },
  };
}

DemandReporter::Sources Head::demand_sources() {
  return {
      .pending_actors = [this] { return queue_.actors().actors(); },
      .pending_groups = [this] { return queue_.groups().groups(); },
      .is_under_way = [this](GroupId group) { return groups_.is_under_way(group); },
      .places_under_way = [this] { return groups_.places_under_way(); },
      .kept_places = [this] { return drains_.work().kept_places(); },
      .stranded_groups = [this] { return drains_.work().stranded_groups(); },
      .shown = [this](const NodeInfo& info) { return drains_.shown(info); },
  };
}

NodeRegistry::Hooks Head::node_hooks() {
  return {
      .shown = [this](const NodeInfo& info) { return drains_.shown(info); },
      .returned =
          [this](const control::RegisterNode& body) {
            groups_.node_returned(body.info.node);
            actors_.node_returned(body);
            jobs_.node_returned(body);
          },
      .connected =
          [this](NodeId node) {
            tokens_.tell(node);
            drains_.node_connected(node);
          },
      .ends = [this](NodeId node, const std::string& why) { return drains_.node_lost(node, why); },
      .lost =
          [this](NodeId node, const std::string& text) {
            const std::set<GroupId> torn = groups_.node_lost(node, text);
            actors_.node_lost(node, text, torn);
            jobs_.node_lost(node, text);
          },
      .place_pending = [this] { queue_.place_all(); },
  };
}

HeadOverview::Sources Head::overview_sources() {
  return {
      .shown = [this](const NodeInfo& info) { return drains_.shown(info); },
      .actors_waiting = [this] { return queue_.actors().size(); },
      .nodes_draining = [this] { return drains_.nodes().size(); },
      .drains_begun = [this] { return drains_.begun(); },
  };
}

// -- Requests

void Head::handle(NodeId from, ControlRequest request, ControlAnswerer answer) {
  HeadCall call{from, request.job, now_() + request.timeout};
  const bool known =
      tables_.nodes().contains(from) || std::holds_alternative<control::RegisterNode>(request.body);
  if (!known)
    return answer(unavailable("node " + from.short_hex() + " is not in the cluster (any more)"));
  answer = ledger_.once(call, request, std::move(answer));
  if (answer) std::visit([&](auto& body) { route(call, body, std::move(answer)); }, request.body);
}

template <class Body>
bool Head::serve(const HeadCall& call, Body& body, ControlAnswerer& answer) {
  const auto try_part = [&](auto& part) {
    if constexpr (requires { part.serve(call, body, std::move(answer)); }) {
      part.serve(call, body, std::move(answer));
      return true;
    } else {
      return false;
    }
  };
  return std::apply([&](auto&... part) { return (try_part(part) || ...); }, parts_of(*this));
}

template <class Body>
void Head::route(const HeadCall& call, Body& body, ControlAnswerer answer) {
  if (!serve(call, body, answer))
    answer(unimplemented("node " + call.from.short_hex() +
                         " sent the head a request that is not the head's to serve"));
}

void Head::route(const HeadCall& call, control::ChangeToken& body, ControlAnswerer answer) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(call.deadline - now_());
  tokens_.change(std::move(body), left, tables_.nodes().all(), std::move(answer));
}

void Head::route(const HeadCall& call, ObjectControl& body, ControlAnswerer answer) {
  if (std::holds_alternative<control::ListObjects>(body))
    return object_lists_.serve(call, std::move(answer));
  std::visit(
      [&](auto& which) {
        if (!serve(call, which, answer)) answer(unimplemented("the head keeps no objects"));
      },
      body);
}

void Head::route(const HeadCall& call, ObserveControl& body, ControlAnswerer answer) {
  std::visit(
      [&](auto& which) {
        if (!serve(call, which, answer))
          answer(unimplemented("this is asked of a node, not of the head"));
      },
      body);
}

void Head::handle_event(NodeId from, const ControlEvent& event) {
  const auto* lines = std::get_if<LogLines>(&event);
  if (!lines) return;
  const JobRecord* job = tables_.jobs().find(lines->job);
  if (job && job->info.running && job->info.node != from) links_.event(job->info.node, event);
}

// -- Time

void Head::tick() {
  const Deadline now = now_();
  const auto tick_part = [&](auto& part) {
    if constexpr (requires { part.tick(now); }) part.tick(now);
  };
  std::apply([&](auto&... part) { (tick_part(part), ...); }, parts_of(*this));
}

Deadline Head::next_tick() const {
  const auto next_of = [](const auto& part) {
    if constexpr (requires { part.next_tick(); })
      return part.next_tick();
    else
      return Deadline::max();
  };
  return std::apply(
      [&](const auto&... part) {
        return std::min({Deadline::max(), next_of(part)...});
      },
      parts_of(*this));
}

Status Head::end_restore() {
  if (Status status = tables_.end_restore(); !status.ok()) return status;
  tokens_.restore(tables_.token());
  if (Status status = nodes_.restored(); !status.ok()) return status;
  groups_.restored();
  actors_.restored();
  drains_.restored();
  return {};
}

}  // namespace runtime
