#include "placement/app/cli_stack.h"

#include <algorithm>
#include <vector>

#include "placement/app/cli_nodes.h"
#include "placement/app/cli_text.h"
#include "runtime/core/nearest.h"

namespace placement {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kNamedMax = 5;  // of several that may be meant

std::string describe_actor(const runtime::ActorState& actor) {
  return actor.class_name + " " + actor.actor.short_hex() +
         (actor.name.empty() ? "" : " '" + actor.name + "'");
}

/// The actors that `what` may mean: by name, else by the first digits of an id.
runtime::Result<std::vector<runtime::ActorState>> candidates(NodeSet& nodes,
                                                             runtime::NodeClient& client,
                                                             const std::string& what) {
  for (const char* key : {"name", "id"}) {
    runtime::control::ListActors request;
    request.filters = {{key, what}};
    request.limit = 100;
    auto page = observe<runtime::ActorPage>(nodes.loop(), client, request);
    if (!page.ok()) return page.status();
    // The dead are of no interest next to a living one.
    std::vector<runtime::ActorState> living;
    for (const runtime::ActorState& actor : page->actors) {
      if (actor.phase != runtime::ActorPhase::kDead) living.push_back(actor);
    }
    if (!living.empty()) return living;
    if (!page->actors.empty()) return page->actors;
  }
  return std::vector<runtime::ActorState>();
}

runtime::Result<runtime::ActorState> choose_actor(NodeSet& nodes, runtime::NodeClient& client,
                                                  const std::string& what) {
  auto found = candidates(nodes, client, what);
  if (!found.ok()) return found.status();
  if (found->empty()) {
    std::vector<std::string> names;
    for (const runtime::ActorState& actor : nodes.cluster().actors) {
      if (actor.phase == runtime::ActorPhase::kDead) continue;
      names.push_back(actor.actor.hex());
      if (!actor.name.empty()) names.push_back(actor.name);
    }
    return runtime::not_found(
        "no actor is called '" + what + "', and no actor's id begins so" +
        (names.empty() ? "; see starling list actors" : runtime::offer_closest(what, names)));
  }
  if (found->size() == 1) return found->front();
  std::string text = "'" + what + "' may be";
  for (std::size_t i = 0; i < std::min(found->size(), kNamedMax); ++i)
    text += (i == 0 ? " " : ", ") + describe_actor((*found)[i]);
  return runtime::invalid_argument(text + (found->size() > kNamedMax ? " and others" : "") +
                                   "; give more digits of its id");
}

Json stack_json(const runtime::StackReport& report) {
  Json threads = Json::array();
  for (const runtime::ThreadStack& thread : report.threads) {
    threads.push_back({{"tid", thread.tid},
                       {"name", thread.name},
                       {"state", thread.state},
                       {"waits_in", thread.waits_in},
                       {"actor", thread.actor.is_none() ? "" : thread.actor.hex()},
                       {"running", thread.running},
                       {"running_ms", static_cast<double>(thread.running_ns) * 1e-6},
                       {"frames", thread.frames}});
  }
  return Json{{"pid", report.pid},
              {"class", report.class_name},
              {"process", report.process},
              {"note", report.note},
              {"threads", threads}};
}

void print_stacks(const runtime::ActorState& actor, const runtime::StackReport& report) {
  say("actor %s  pid %d on node %s, %s\n", describe_actor(actor).c_str(), report.pid,
      actor.node.short_hex().c_str(), report.process.c_str());
  if (!report.note.empty()) say("note: %s\n", report.note.c_str());
  bool runs = false;
  for (const runtime::ThreadStack& thread : report.threads)
    runs = runs || thread.actor == actor.actor;
  if (!runs) say("it runs no method now\n");
  for (const runtime::ThreadStack& thread : report.threads) {
    say("\nthread %d %s  %s", thread.tid, thread.name.c_str(), thread.state.c_str());
    if (!thread.waits_in.empty()) say(" in %s", thread.waits_in.c_str());
    if (!thread.running.empty()) {
      say("  runs %s", thread.running.c_str());
      if (thread.actor != actor.actor) say(" of %s", thread.actor.short_hex().c_str());
      say(" for %.3f s", static_cast<double>(thread.running_ns) * 1e-9);
    }
    say("\n");
    for (std::size_t i = 0; i < thread.frames.size(); ++i)
      say("  #%zu %s\n", i, thread.frames[i].c_str());
    if (thread.frames.empty()) say("  (no stack)\n");
  }
}

}  // namespace

int stack_command(const std::string& address, const std::string& what, bool json) {
  if (what.empty())
    return fail(
        runtime::invalid_argument("name an actor: its id, the first digits of it, or its name"));
  auto nodes = NodeSet::connect(address);
  if (!nodes.ok()) return fail(nodes.status());
  runtime::NodeClient* any = nullptr;
  for (NodeSet::Entry& entry : (*nodes)->nodes()) {
    if (!any && entry.client) any = entry.client.get();
  }
  if (!any) return fail(runtime::unavailable("no node of the cluster answers"));
  auto actor = choose_actor(**nodes, *any, what);
  if (!actor.ok()) return fail(actor.status());
  if (actor->phase == runtime::ActorPhase::kDead)
    return fail(
        runtime::actor_died("actor " + describe_actor(*actor) + " is dead: " + actor->death.text));
  if (actor->node.is_none())
    return fail(runtime::unavailable("actor " + describe_actor(*actor) + " is " +
                                     std::string(to_string(actor->phase)) +
                                     " and has no process: " + actor->pending_reason));
  NodeSet::Entry* node = (*nodes)->find(actor->node);
  if (!node || !node->client) {
    return fail(runtime::unavailable("node " + actor->node.short_hex() + ", where actor " +
                                     describe_actor(*actor) + " runs, cannot be reached" +
                                     (node ? ": " + node->trouble.message() : "")));
  }
  auto report = observe<runtime::StackReport>((*nodes)->loop(), *node->client,
                                              runtime::control::ReadStack{actor->actor});
  if (!report.ok()) return fail(report.status());
  if (json)
    print_json(stack_json(*report));
  else
    print_stacks(*actor, *report);
  return 0;
}

}  // namespace placement
