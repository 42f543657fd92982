#include "placement/app/cli_why.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "placement/app/cli_nodes.h"
#include "placement/app/cli_query.h"
#include "placement/resource/label_selector.h"
#include "runtime/core/duration.h"
#include "runtime/core/nearest.h"

namespace placement {

namespace {

void line(const std::string& text) { say("%s\n", text.c_str()); }

std::string resources_text(const runtime::ResourceMap& resources) {
  std::string text;
  for (const auto& [name, amount] : resources) {
    char number[40];
    std::snprintf(number, sizeof number, "%.14g", amount);
    text += (text.empty() ? "" : ", ") + name + " " + number;
  }
  return text.empty() ? "nothing" : text;
}

std::string resources_text(const std::vector<std::uint32_t>& gpus) {
  std::string text;
  for (std::uint32_t gpu : gpus) text += (text.empty() ? "" : ",") + std::to_string(gpu);
  return text;
}

std::string quoted_or_empty(const std::string& name) {
  return name.empty() ? "" : " '" + name + "'";
}

std::string label_of(const runtime::ActorState& actor) {
  return "actor " + actor.class_name + quoted_or_empty(actor.name) + " " + actor.actor.short_hex();
}
std::string label_of(const runtime::GroupState& group) {
  return "placement group" + quoted_or_empty(group.spec.name) + " " + group.spec.group.short_hex();
}

constexpr const char* kAboutToLook = "the head is about to look for a place";
std::string or_else(const std::string& text, const char* otherwise) {
  return text.empty() ? otherwise : text;
}

/// What keeps the actor's process from being started, which its node alone knows. Empty: nothing,
/// or the node does not say.
std::string start_trouble(const std::string& address, const runtime::ClusterState& state,
                          const runtime::ActorState& actor) {
  constexpr std::chrono::seconds kStartPatience{5};
  const auto node = std::ranges::find(state.nodes, actor.node, &runtime::NodeInfo::node);
  auto cluster = runtime::find_cluster(address);
  if (node == state.nodes.end() || !cluster.ok()) return {};
  if (cluster->address != node->address) {
    cluster->address = node->address;
    cluster->unix_path.clear();
  }
  runtime::EventLoop loop;
  const auto client = runtime::NodeClient::connect(loop, *cluster, runtime::Role::kTool,
                                                   runtime::deadline_after(kStartPatience));
  if (!client.ok()) return {};
  return observe<std::string>(loop, **client, runtime::control::ReadStart{actor.actor},
                              kStartPatience)
      .value_or("");
}

void explain(const runtime::ActorState& actor, const std::string& trouble) {
  line(label_of(actor) + " (" + actor.actor.hex() + ") of job " + actor.job.short_hex() + ": " +
       std::string(to_string(actor.phase)));
  line("  asks for " + resources_text(actor.resources));
  const std::string gpus =
      actor.gpus.empty() ? "" : ", GPU " + resources_text(actor.gpus) + " of that node";
  switch (actor.phase) {
    case runtime::ActorPhase::kPending:
      line("  waits: " + or_else(actor.pending_reason, kAboutToLook));
      break;
    case runtime::ActorPhase::kStarting:
      line("  is being started on node " + actor.node.short_hex() + gpus +
           (trouble.empty() ? ": its process begins, or its constructor runs (starling logs " +
                                  actor.actor.short_hex() + ")"
                            : ", which cannot start its process yet: " + trouble));
      break;
    case runtime::ActorPhase::kAlive:
      line("  runs on node " + actor.node.short_hex() + ", pid " + std::to_string(actor.pid) +
           gpus);
      break;
    case runtime::ActorPhase::kDead:
      line("  died: " + or_else(actor.death.text, "cause unknown"));
      break;
  }
  if (actor.restarts > 0) {
    const std::string times =
        std::to_string(actor.restarts) + (actor.restarts == 1 ? " time" : " times");
    line("  started again " + times +
         (actor.phase == runtime::ActorPhase::kDead
              ? ""
              : "; the last time it ended: " + actor.death.text));
  }
  if (!actor.death.output_tail.empty()) line(actor.death.output_tail);
}

void explain(const runtime::GroupState& group, const runtime::ClusterState& state) {
  const char* phase = group.placed ? "placed" : group.is_torn() ? "being placed again" : "pending";
  line(label_of(group) + " (" + group.spec.group.hex() + ") of job " + group.job.short_hex() +
       ": " + phase);
  line("  " + std::string(to_string(group.spec.strategy)) +
       (group.spec.detached ? ", detached in namespace " + group.spec.name_space : std::string()));
  for (std::size_t b = 0; b < group.spec.bundles.size(); ++b) {
    std::string text =
        "  bundle " + std::to_string(b) + ": " + resources_text(group.spec.bundles[b]);
    if (b < group.spec.bundle_labels.size() && !group.spec.bundle_labels[b].empty())
      text += " with " + to_string(group.spec.bundle_labels[b]);
    if (b < group.nodes.size()) text += " on node " + group.nodes[b].short_hex();
    if (b < group.gpus.size() && !group.gpus[b].empty())
      text += ", GPU " + resources_text(group.gpus[b]);
    line(text);
  }
  if (!group.placed) line("  waits: " + or_else(group.pending_reason, kAboutToLook));
  if (group.placements > 1)
    line("  was placed " + std::to_string(group.placements) + " times, since it lost nodes");
  // What waits for room may wait for these.
  if (group.placed) return;
  for (const runtime::GroupState& other : state.groups) {
    if (other.placed)
      line("  holds room meanwhile: " + label_of(other) + ", " +
           std::to_string(other.spec.bundles.size()) + " bundles");
  }
}

void explain(const runtime::NodeInfo& node, const runtime::ClusterState& state) {
  const std::string where =
      node.address + " (" + node.hostname + ")" + (node.is_head ? ", next to the head" : "");
  line("node " + node.node.hex() + " at " + where + ": " +
       (node.drain   ? "draining"
        : node.alive ? "alive"
                     : "dead"));
  line("  offers " + resources_text(node.resources));
  if (node.drain) {
    line("  is drained (" + node.drain->reason + "): takes nothing new, leaves within " +
         runtime::describe_duration(node.drain->left) + ", waits for " + node.drain->waits_for);
  }
  line("  has left " + resources_text(node.available));
  if (!node.labels.empty()) line("  labels " + to_string(node.labels));
  for (const runtime::GroupState& group : state.groups) {
    std::string bundles;
    for (std::size_t b = 0; b < group.nodes.size(); ++b) {
      if (group.nodes[b] == node.node)
        bundles += (bundles.empty() ? "" : ", ") + std::to_string(b) + " (" +
                   resources_text(group.spec.bundles[b]) + ")";
    }
    if (!bundles.empty()) line("  holds for " + label_of(group) + ": bundle " + bundles);
  }
  for (const runtime::ActorState& actor : state.actors) {
    const bool runs = actor.node == node.node && (actor.phase == runtime::ActorPhase::kAlive ||
                                                  actor.phase == runtime::ActorPhase::kStarting);
    if (runs)
      line("  runs " + label_of(actor) + ": " + resources_text(actor.resources) +
           (actor.gpus.empty() ? "" : ", GPU " + resources_text(actor.gpus)));
  }
}

void explain(const runtime::JobInfo& job, const runtime::ClusterState& state) {
  line("job " + job.job.hex() + ": " +
       (job.running && job.pid == 0 ? "pending"
        : job.running
            ? "running, pid " + std::to_string(job.pid) + " on node " + job.node.short_hex()
            : "ended"));
  line("  " + job.command);
  if (!job.running)
    line("  " + std::string(runtime::job_state(job)) + ": " +
         or_else(job.end.text, "cause unknown"));
  for (const runtime::ActorState& actor : state.actors) {
    if (actor.job == job.job && actor.phase == runtime::ActorPhase::kPending)
      line("  its " + label_of(actor) + " waits: " + or_else(actor.pending_reason, kAboutToLook));
  }
  for (const runtime::GroupState& group : state.groups) {
    if (group.job == job.job && !group.placed)
      line("  " + (group.spec.group == job.place ? "it" : "its " + label_of(group)) +
           " waits: " + or_else(group.pending_reason, kAboutToLook));
  }
}

struct Match {
  std::string label;
  std::function<void()> explain;
  bool by_name = false;
};

/// What there is under that name or id, and all that could have been said.
struct Found {
  std::vector<Match> matches;
  std::vector<std::string> candidates;
};

Found look_up(const std::string& address, const runtime::ClusterState& state,
              const std::string& what) {
  Found found;
  const auto consider = [&](const std::string& id, const std::string& name,
                            const std::string& label, std::function<void()> explain) {
    found.candidates.push_back(id);
    if (!name.empty()) found.candidates.push_back(name);
    const bool by_name = !name.empty() && name == what;
    if (by_name || (!what.empty() && id.starts_with(what)))
      found.matches.push_back({label, std::move(explain), by_name});
  };
  for (const runtime::ActorState& actor : state.actors) {
    consider(actor.actor.hex(), actor.name,
             label_of(actor) + " (" + std::string(to_string(actor.phase)) + ")", [&] {
               explain(actor, actor.phase == runtime::ActorPhase::kStarting
                                  ? start_trouble(address, state, actor)
                                  : "");
             });
  }
  for (const runtime::GroupState& group : state.groups) {
    consider(group.spec.group.hex(), group.spec.name, label_of(group),
             [&] { explain(group, state); });
  }
  for (const runtime::NodeInfo& node : state.nodes) {
    consider(node.node.hex(), node.address, "node " + node.node.short_hex(),
             [&] { explain(node, state); });
  }
  for (const runtime::JobInfo& job : state.jobs) {
    consider(job.job.hex(), "", "job " + job.job.short_hex(), [&] { explain(job, state); });
  }
  return found;
}

}  // namespace

int why_command(const std::string& address, const std::string& what) {
  auto state = fetch_state(address);
  if (!state.ok()) return fail(state.status());
  Found found = look_up(address, *state, what);
  if (found.matches.empty()) {
    const std::string near = what.empty() ? "" : runtime::did_you_mean(what, found.candidates);
    return fail(
        runtime::not_found("no actor, placement group, node or job is called '" + what + "'" +
                           (near.empty() ? runtime::offer_closest(what, found.candidates) : near) +
                           " (starling status shows what there is)"));
  }
  // A name may be several things' over time: all of them. First digits mean one.
  const bool named = std::any_of(found.matches.begin(), found.matches.end(),
                                 [](const Match& match) { return match.by_name; });
  if (named) std::erase_if(found.matches, [](const Match& match) { return !match.by_name; });
  if (found.matches.size() > 1 && !named) {
    std::string text = "'" + what + "' may be";
    for (const Match& match : found.matches) text += " " + match.label + ",";
    text.back() = ';';
    return fail(runtime::invalid_argument(text + " give more digits"));
  }
  for (const Match& match : found.matches) match.explain();
  return 0;
}

}  // namespace placement
