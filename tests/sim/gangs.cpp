#include "gangs.h"

#include <cmath>
#include <map>
#include <set>

namespace sim {

namespace {

using runtime::ActorPhase;
using runtime::GroupStrategy;

constexpr double kTolerance = 1e-6;

double cpus(const runtime::ResourceMap& resources) {
  auto found = resources.find("CPU");
  return found == resources.end() ? 0 : found->second;
}

std::string group_errors(const runtime::GroupState& group, const std::set<runtime::NodeId>& nodes) {
  const std::string name = "group " + group.spec.group.short_hex();
  if (group.nodes.size() != group.spec.bundles.size()) {
    return name + " is placed, and " + std::to_string(group.nodes.size()) + " of its " +
           std::to_string(group.spec.bundles.size()) + " bundles have a node";
  }
  for (const runtime::NodeId& node : group.nodes) {
    if (!nodes.contains(node))
      return name + " is placed on node " + node.short_hex() + ", which is not in the cluster";
  }
  const std::set<runtime::NodeId> own(group.nodes.begin(), group.nodes.end());
  if (group.spec.strategy == GroupStrategy::kStrictSpread && own.size() != group.nodes.size())
    return name + " has two bundles on one node";
  if (group.spec.strategy == GroupStrategy::kStrictPack && own.size() != 1)
    return name + " is on " + std::to_string(own.size()) + " nodes";
  return "";
}

}  // namespace

std::string account_errors(const runtime::ClusterState& state, bool at_rest) {
  std::set<runtime::NodeId> nodes;
  for (const runtime::NodeInfo& node : state.nodes) nodes.insert(node.node);
  std::map<runtime::NodeId, double> reserved;
  for (const runtime::GroupState& group : state.groups) {
    if (!group.placed) continue;
    if (std::string error = group_errors(group, nodes); !error.empty()) return error;
    for (std::size_t b = 0; b < group.nodes.size(); ++b)
      reserved[group.nodes[b]] += cpus(group.spec.bundles[b]);
  }
  if (at_rest && state.groups.empty()) {
    for (const runtime::ActorState& actor : state.actors) {
      if (actor.phase == ActorPhase::kStarting || actor.phase == ActorPhase::kAlive)
        reserved[actor.node] += cpus(actor.resources);
    }
  }
  for (const runtime::NodeInfo& node : state.nodes) {
    const double used = cpus(node.resources) - cpus(node.available);
    const std::string text = "node " + node.node.short_hex() + " has " +
                             std::to_string(cpus(node.available)) + " of " +
                             std::to_string(cpus(node.resources)) + " CPUs free, and " +
                             std::to_string(reserved[node.node]) + " are reserved";
    if (cpus(node.available) < -kTolerance || used + kTolerance < reserved[node.node]) return text;
    if (at_rest && state.groups.empty() && std::abs(used - reserved[node.node]) > kTolerance)
      return text;
  }
  return "";
}

void Gangs::make(runtime::Runtime& rt) {
  Random& random = world_.random();
  if (modest_ && !gangs_.empty()) return;
  runtime::GroupSpec spec;
  spec.group = runtime::GroupId::random();
  spec.strategy = static_cast<GroupStrategy>(random.below(4));
  spec.bundles.assign(1 + random.below(3),
                      {{"CPU", modest_ ? 0.25 : 1.0 + static_cast<double>(random.below(2))}});
  const std::chrono::milliseconds time(random.one_in(3) ? random.between(5, 100)
                                                        : random.between(500, 3000));
  const runtime::Deadline deadline = world_.now() + time + 2s;
  auto made = rt.groups().create(spec, time).get();
  if (world_.current()->crashed) return;
  world_.note("group " + spec.group.short_hex() + " " +
              std::to_string(static_cast<int>(made.status().code())));
  if (world_.now() > deadline + world_.current()->paused_for)
    world_.fail("a placement group came back long after its deadline: " +
                made.status().to_string());
  if (made.status().code() == runtime::ErrorCode::kInternal)
    world_.fail("placement group: " + made.status().to_string());
  // Without an answer it may be there all the same.
  gangs_.push_back({spec.group, static_cast<std::uint32_t>(spec.bundles.size())});
}

std::optional<runtime::BundleSlot> Gangs::some_bundle() {
  Random& random = world_.random();
  if (gangs_.empty() || random.one_in(3)) return std::nullopt;
  const Gang& gang = gangs_[random.below(gangs_.size())];
  return runtime::BundleSlot{gang.group, static_cast<std::uint32_t>(random.below(gang.bundles))};
}

bool Gangs::remove(runtime::Runtime& rt, const Gang& gang) {
  const runtime::Status removed = rt.get(rt.groups().remove(gang.group, 5s));
  world_.note("remove group " + gang.group.short_hex() + " " +
              std::to_string(static_cast<int>(removed.code())));
  if (removed.code() == runtime::ErrorCode::kInternal && !world_.current()->crashed)
    world_.fail("removing a placement group: " + removed.to_string());
  return removed.ok() || removed.code() == runtime::ErrorCode::kNotFound;
}

void Gangs::remove_one(runtime::Runtime& rt) {
  if (gangs_.empty()) return;
  const std::size_t chosen = world_.random().below(gangs_.size());
  if (remove(rt, gangs_[chosen]) && !world_.current()->crashed)
    gangs_.erase(gangs_.begin() + static_cast<std::ptrdiff_t>(chosen));
}

bool Gangs::remove_all(runtime::Runtime& rt) {
  bool all = true;
  for (const Gang& gang : gangs_) {
    if (world_.current()->crashed) return false;
    all = remove(rt, gang) && all;
  }
  return all;
}

void Gangs::look(runtime::Runtime& rt) {
  auto state = rt.cluster().state(2s);
  if (!state.ok() || world_.current()->crashed) return;
  if (std::string error = account_errors(*state, false); !error.empty()) world_.fail(error);
}

}  // namespace sim
