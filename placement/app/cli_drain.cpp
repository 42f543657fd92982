#include "placement/app/cli_drain.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "placement/app/cli_query.h"
#include "runtime/control/cluster_client.h"
#include "runtime/core/duration.h"
#include "runtime/core/nearest.h"

namespace placement {

namespace {

constexpr std::size_t kOffered = 3;
constexpr std::size_t kDepartedMax = 5;  // of several that may be meant
constexpr std::size_t kNameMax = 256;    // of what is compared with every node
constexpr auto kDrainPoll = std::chrono::milliseconds(200);
constexpr auto kDrainPatience = std::chrono::seconds(15);  // beyond the deadline

std::string node_name(const runtime::NodeInfo& node) {
  return node.node.short_hex() + " (" + node.address +
         (node.hostname.empty() ? "" : ", " + node.hostname) + ")";
}

std::string list_of(const std::vector<runtime::NodeInfo>& nodes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < std::min(count, nodes.size()); ++i)
    text += (i == 0 ? "" : ", ") + node_name(nodes[i]);
  return text;
}

std::size_t distance_to(const runtime::NodeInfo& node, const std::string& text) {
  return std::min({runtime::edit_distance(node.node.hex().substr(0, text.size()), text),
                   runtime::edit_distance(node.address, text),
                   runtime::edit_distance(node.hostname, text)});
}

void say_what_happens(const runtime::NodeInfo& node) {
  if (!node.drain) return;
  say("node %s (%s) is drained (%s): it leaves within %s; now it waits for %s\n",
      node.node.short_hex().c_str(), node.address.c_str(), node.drain->reason.c_str(),
      runtime::describe_duration(node.drain->left).c_str(), node.drain->waits_for.c_str());
  std::fflush(stdout);
}

// What has changed since then is asked for.
constexpr std::uint64_t kNow = 0;        // those that there are
constexpr std::uint64_t kBeginning = 1;  // those that have gone, too

runtime::Result<runtime::control::NodeList> nodes_of(const std::string& address,
                                                     std::uint64_t since = kNow) {
  return ask_cluster<runtime::control::NodeList>(
      address, [since](runtime::NodeClient& client, runtime::Deadline deadline, auto done) {
        runtime::ClusterClient(client).watch_nodes(since, deadline, done);
      });
}

/// Those that had this address, or whose ids begin so: of each the last time it left.
std::vector<runtime::NodeDeparture> find_departed(
    const std::vector<runtime::NodeDeparture>& departed, const std::string& text) {
  std::vector<runtime::NodeDeparture> found;
  for (auto gone = departed.rbegin(); gone != departed.rend(); ++gone) {
    // An address may have been several nodes' over time: the last one is meant.
    if (gone->node.address == text) return {*gone};
    const bool is_known = std::ranges::any_of(
        found, [&](const auto& other) { return other.node.node == gone->node.node; });
    if (gone->node.node.hex().starts_with(text) && !is_known) found.push_back(*gone);
  }
  return found;
}

/// What to answer where no node of the cluster is called that: `unknown`, but for those that have
/// left.
runtime::Status why_not_there(const std::vector<runtime::NodeDeparture>& departed,
                              const std::string& text, const runtime::Status& unknown) {
  const std::vector<runtime::NodeDeparture> found = find_departed(departed, text);
  if (found.empty()) return unknown;
  if (found.size() == 1)
    return runtime::not_found("node '" + text +
                              "' is not in the cluster any more: " + found.front().why);
  std::vector<runtime::NodeInfo> nodes;
  for (const runtime::NodeDeparture& gone : found) nodes.push_back(gone.node);
  return runtime::invalid_argument("'" + text + "' may be any of " + list_of(nodes, kDepartedMax) +
                                   (nodes.size() > kDepartedMax ? " and others" : "") +
                                   ", which have left the cluster; give more digits of the id");
}

int wait_until_drained(const DrainOptions& options, const runtime::NodeInfo& node,
                       runtime::Deadline until) {
  runtime::Status last;
  while (std::chrono::steady_clock::now() < until) {
    const auto nodes = nodes_of(options.address);
    last = nodes.status();
    const auto is_it = [&](const runtime::NodeInfo& other) { return other.node == node.node; };
    if (nodes.ok() && std::none_of(nodes->nodes.begin(), nodes->nodes.end(), is_it)) {
      say("node %s has left\n", node.node.short_hex().c_str());
      return 0;
    }
    std::this_thread::sleep_for(kDrainPoll);
  }
  if (!last.ok())
    return fail(last.with_context("waiting for node " + node.node.short_hex() + " to leave"));
  return fail(
      runtime::deadline_exceeded("node " + node.node.short_hex() +
                                 " has not left; `starling list nodes` says what it waits for"));
}

}  // namespace

runtime::Result<runtime::NodeInfo> find_node(const std::vector<runtime::NodeInfo>& nodes,
                                             const std::string& text) {
  if (text.empty() || text.size() > kNameMax)
    return runtime::invalid_argument(
        "a node is named by its id, the first digits of that, HOST:PORT or its host's name");
  std::vector<runtime::NodeInfo> matching;
  for (const runtime::NodeInfo& node : nodes) {
    if (node.node.hex() == text || node.address == text) return node;
    if (node.node.hex().starts_with(text) || node.hostname == text) matching.push_back(node);
  }
  if (matching.size() == 1) return matching.front();
  if (matching.size() > 1)
    return runtime::invalid_argument("'" + text + "' may be any of " +
                                     list_of(matching, matching.size()) +
                                     "; give more of the id, or HOST:PORT");
  std::vector<runtime::NodeInfo> nearest = nodes;
  std::stable_sort(nearest.begin(), nearest.end(),
                   [&](const runtime::NodeInfo& a, const runtime::NodeInfo& b) {
                     return distance_to(a, text) < distance_to(b, text);
                   });
  return runtime::not_found("the cluster has no node '" + text + "'; the nearest: " +
                            list_of(nearest, kOffered) + " (`starling list nodes` shows all)");
}

int drain_command(const DrainOptions& options) {
  const auto time = runtime::parse_duration(options.deadline);
  if (!time.ok()) return fail(time.status().with_context("--deadline"));
  if (time->count() == 0)
    return fail(runtime::invalid_argument(
        "--deadline 0: a node that is drained needs some time; `starling stop "
        "--address HOST:PORT` ends it at once"));
  const auto nodes = nodes_of(options.address, kBeginning);
  if (!nodes.ok()) return fail(nodes.status());
  const auto node = find_node(nodes->nodes, options.node);
  if (!node.ok())
    return fail(node.status().code() == runtime::ErrorCode::kNotFound
                    ? why_not_there(nodes->departed, options.node, node.status())
                    : node.status());
  const runtime::Deadline until = runtime::deadline_after(*time + kDrainPatience);
  const auto drained = ask_cluster<bool>(
      options.address, [&](runtime::NodeClient& client, runtime::Deadline deadline, auto done) {
        runtime::ClusterClient(client).drain_node(
            node->node, *time, options.reason, deadline, [done](const runtime::Status& status) {
              done(status.ok() ? runtime::Result<bool>(true) : runtime::Result<bool>(status));
            });
      });
  if (!drained.ok()) return fail(drained.status());
  if (const auto after = nodes_of(options.address); after.ok()) {
    const auto still =
        std::find_if(after->nodes.begin(), after->nodes.end(),
                     [&](const runtime::NodeInfo& now) { return now.node == node->node; });
    if (still != after->nodes.end())
      say_what_happens(*still);
    else if (!options.wait)
      say("node %s had nothing to keep it, and has left\n", node->node.short_hex().c_str());
  }
  return options.wait ? wait_until_drained(options, *node, until) : 0;
}

}  // namespace placement
