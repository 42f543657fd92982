#include "placement/app/cli_status.h"

#include "placement/app/cli_jobs.h"
#include "placement/app/cli_query.h"
#include "runtime/core/duration.h"

namespace placement {

namespace {

using Json = nlohmann::ordered_json;

// The keys here are what scripts rely on: add, never rename.

const char* phase_of(const runtime::GroupState& group) {
  return group.placed ? "placed" : group.is_torn() ? "rescheduling" : "pending";
}

/// "CPU 1.5/2  memory 7.6/7.6 GiB"
std::string usage(const runtime::NodeInfo& node) {
  std::string text;
  for (const auto& [name, total] : node.resources) {
    auto left = node.available.find(name);
    double used = total - (left == node.available.end() ? 0 : left->second);
    double unit = name == "memory" ? 1 << 30 : 1;
    char part[160];
    std::snprintf(part, sizeof part, "%s%s %.4g/%.4g%s", text.empty() ? "" : "  ", name.c_str(),
                  used / unit, total / unit, name == "memory" ? " GiB" : "");
    text += part;
  }
  return text;
}

template <class T>
Json list_json(const runtime::ClusterState& state, std::vector<T> runtime::ClusterState::*items) {
  Json list = Json::array();
  for (const T& item : state.*items) list.push_back(to_json(item, state));
  return list;
}

void print_nodes(const runtime::ClusterState& state) {
  for (const runtime::NodeInfo& node : state.nodes) print_row(node);
}

void print_actors(const runtime::ClusterState& state) {
  for (const runtime::ActorState& actor : state.actors) {
    if (actor.phase != runtime::ActorPhase::kDead) print_row(actor);
  }
}

void print_groups(const runtime::ClusterState& state) {
  for (const runtime::GroupState& group : state.groups) print_row(group);
}

}  // namespace

Json to_json(const runtime::NodeInfo& node) {
  runtime::ResourceMap available = node.available;
  for (const auto& [name, total] : node.resources)
    available.try_emplace(name, 0.0);  // all of it is taken
  Json json{{"id", node.node.hex()},
            {"address", node.address},
            {"hostname", node.hostname},
            {"state", node.drain ? "draining" : node.alive ? "alive" : "dead"},
            {"is_head", node.is_head},
            {"pid", node.pid},
            {"resources", node.resources},
            {"available", available},
            {"labels", node.labels}};
  if (node.drain) {
    json["drain"] = {{"reason", node.drain->reason},
                     {"deadline_unix_ms", node.drain->deadline.count()},
                     {"left_ms", node.drain->left.count()},
                     {"waits_for", node.drain->waits_for}};
  }
  return json;
}

Json to_json(const runtime::ActorState& actor) {
  Json json{{"id", actor.actor.hex()},
            {"name", actor.name},
            {"namespace", actor.name_space},
            {"detached", actor.detached},
            {"class", actor.class_name},
            {"state", std::string(to_string(actor.phase))},
            {"node", actor.node.is_none() ? "" : actor.node.hex()},
            {"pid", actor.pid},
            {"restarts", actor.restarts},
            {"moves", actor.moves},
            {"pending_reason", actor.pending_reason},
            {"job", actor.job.hex()},
            {"resources", actor.resources},
            {"gpus", actor.gpus}};
  if (actor.phase == runtime::ActorPhase::kDead) json["death_cause"] = actor.death.text;
  return json;
}

Json to_json(const runtime::GroupState& group) {
  Json bundles = Json::array();
  for (std::size_t i = 0; i < group.spec.bundles.size(); ++i) {
    bundles.push_back(
        {{"resources", group.spec.bundles[i]},
         {"node", i < group.nodes.size() ? group.nodes[i].hex() : ""},
         {"labels",
          i < group.spec.bundle_labels.size() ? group.spec.bundle_labels[i] : runtime::Labels()},
         {"gpus", i < group.gpus.size() ? group.gpus[i] : std::vector<std::uint32_t>()}});
  }
  return Json{{"id", group.spec.group.hex()},
              {"name", group.spec.name},
              {"strategy", std::string(to_string(group.spec.strategy))},
              {"state", phase_of(group)},
              {"bundles", bundles},
              {"pending_reason", group.pending_reason},
              {"namespace", group.spec.name_space},
              {"detached", group.spec.detached},
              {"job", group.job.hex()},
              {"placements", group.placements}};
}

void print_row(const runtime::NodeInfo& node) {
  say("  %s  %-21s %-4s pid %-7d %s  (used/total)\n", node.node.short_hex().c_str(),
      node.address.c_str(), node.is_head ? "head" : "", node.pid, usage(node).c_str());
  if (node.drain) {
    say("            draining (%s): leaves within %s; waits for %s\n", node.drain->reason.c_str(),
        runtime::describe_duration(node.drain->left).c_str(), node.drain->waits_for.c_str());
  }
}

void print_row(const runtime::ActorState& actor) {
  std::string detail =
      actor.phase == runtime::ActorPhase::kDead ? actor.death.text : actor.pending_reason;
  if (actor.restarts > 0)
    detail = "restarts " + std::to_string(actor.restarts) + (detail.empty() ? "" : "  " + detail);
  if (actor.detached)
    detail = "detached in namespace " + actor.name_space + (detail.empty() ? "" : "  " + detail);
  say("  %s  %-8s %s%s%s  node %s  pid %d  %s\n", actor.actor.short_hex().c_str(),
      std::string(to_string(actor.phase)).c_str(), actor.class_name.c_str(),
      actor.name.empty() ? "" : " ", actor.name.c_str(),
      actor.node.is_none() ? "-" : actor.node.short_hex().c_str(), actor.pid, detail.c_str());
}

void print_row(const runtime::GroupState& group) {
  std::string detail = group.pending_reason;
  if (group.spec.detached)
    detail =
        "detached in namespace " + group.spec.name_space + (detail.empty() ? "" : "  " + detail);
  say("  %s  %-12s %s%s%s  %zu bundles  %s\n", group.spec.group.short_hex().c_str(),
      phase_of(group), std::string(to_string(group.spec.strategy)).c_str(),
      group.spec.name.empty() ? "" : " ", group.spec.name.c_str(), group.spec.bundles.size(),
      detail.c_str());
}

int status_command(const std::string& address, bool json) {
  auto state = fetch_state(address);
  if (!state.ok()) return fail(state.status());
  if (json) {
    print_json(Json{{"cluster", state->cluster.hex()},
                    {"nodes", list_json(*state, &runtime::ClusterState::nodes)},
                    {"actors", list_json(*state, &runtime::ClusterState::actors)},
                    {"placement_groups", list_json(*state, &runtime::ClusterState::groups)},
                    {"jobs", list_json(*state, &runtime::ClusterState::jobs)}});
    return 0;
  }
  say("cluster %s: %zu node%s\n", state->cluster.short_hex().c_str(), state->nodes.size(),
      state->nodes.size() == 1 ? "" : "s");
  print_nodes(*state);
  say("jobs:\n");
  print_jobs(*state, false);
  say("actors:\n");
  print_actors(*state);
  if (!state->groups.empty()) {
    say("placement groups:\n");
    print_groups(*state);
  }
  return 0;
}

}  // namespace placement
