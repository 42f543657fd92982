#include "placement/autoscaler/status.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace placement {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kNodesShown = 50;

OrderedJson notes_json(const std::deque<NodePlanner::Failure>& notes, const auto& at) {
  OrderedJson list = OrderedJson::array();
  for (const auto& note : notes) list.push_back({{"at_ms", at(note.at)}, {"text", note.text}});
  return list;
}

std::string age(const OrderedJson& of, const char* key, std::int64_t now_ms) {
  char text[32];
  std::snprintf(
      text, sizeof text, "%.0f s",
      static_cast<double>(std::max<std::int64_t>(0, now_ms - of.value(key, now_ms))) / 1000);
  return text;
}

}  // namespace

OrderedJson status_json(const NodePlanner& planner, const StatusContext& context) {
  const auto at = [&](NodePlanner::Time time) -> std::int64_t {
    if (time == NodePlanner::Time::min()) return 0;
    return context.epoch_ms +
           std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  };
  const AutoscalerConfig& config = planner.config();
  OrderedJson types = OrderedJson::array();
  for (const NodeType& type : config.types) {
    std::size_t spot = 0, on_demand = 0;
    for (const auto& [id, node] : planner.nodes()) {
      if (node.type == type.name) ++(node.capacity == Capacity::kSpot ? spot : on_demand);
    }
    OrderedJson json{{"name", type.name},
                     {"resources", type.resources.to_map()},
                     {"min_nodes", type.min_nodes},
                     {"max_nodes", type.max_nodes},
                     {"spot", spot},
                     {"on_demand", on_demand}};
    OrderedJson troubles = OrderedJson::array();
    for (const Capacity capacity : {Capacity::kSpot, Capacity::kOnDemand}) {
      const auto* health = planner.health(type.name, capacity);
      if (!health) continue;
      if (capacity == Capacity::kSpot) json["spot_short_until_ms"] = at(health->stands_in_until);
      if (health->failures == 0) continue;
      troubles.push_back({{"capacity", std::string(to_string(capacity))},
                          {"failures", health->failures},
                          {"retry_at_ms", at(health->not_before)},
                          {"last", health->last_failure}});
    }
    json["troubles"] = troubles;
    types.push_back(json);
  }
  OrderedJson nodes = OrderedJson::array();
  for (const auto& [id, node] : planner.nodes()) {
    nodes.push_back({{"id", id},
                     {"type", node.type},
                     {"capacity", std::string(to_string(node.capacity))},
                     {"phase", std::string(to_string(node.phase))},
                     {"node", node.node.is_none() ? "" : node.node.hex()},
                     {"since_ms", at(node.since)},
                     {"idle_since_ms", node.idle_since ? at(*node.idle_since) : 0},
                     {"work", node.busy},
                     {"reason", node.reason}});
  }
  OrderedJson demand = OrderedJson::array();
  for (const DemandReport& report : planner.demand()) {
    demand.push_back({{"what", report.what},
                      {"count", report.count},
                      {"unmet", report.unmet},
                      {"reason", report.reason}});
  }
  return OrderedJson{{"pid", ::getpid()},
                     {"config", context.config_file},
                     {"min_nodes", config.min_nodes},
                     {"max_nodes", config.max_nodes},
                     {"other_nodes", planner.others()},
                     {"node_types", types},
                     {"nodes", nodes},
                     {"demand", demand},
                     {"bound", context.bound},
                     {"unlisted", context.unlisted},
                     {"holding_back", planner.holding_back()},
                     {"decisions", notes_json(planner.decisions(), at)},
                     {"failures", notes_json(planner.failures(), at)}};
}

std::string status_text(const OrderedJson& status, std::int64_t now_ms) {
  std::string text;
  const auto line = [&](const std::string& words) { text += words + "\n"; };
  const auto list = [&](const char* key) {
    return status.contains(key) && status[key].is_array() ? status[key] : OrderedJson::array();
  };
  const auto number = [](const OrderedJson& of, const char* key) {
    return std::to_string(of.value(key, std::int64_t{0}));
  };
  const OrderedJson nodes = list("nodes");
  line("autoscaler pid " + number(status, "pid") + ", " + status.value("config", "") + ": " +
       std::to_string(nodes.size()) + " nodes and " + number(status, "other_nodes") +
       " of others, " + number(status, "min_nodes") + " to " + number(status, "max_nodes") +
       " wanted");
  for (const OrderedJson& type : list("node_types")) {
    line("  " + type.value("name", "") + ": " + number(type, "spot") + " spot, " +
         number(type, "on_demand") + " on demand, " + number(type, "min_nodes") + " to " +
         number(type, "max_nodes"));
    if (type.value("spot_short_until_ms", std::int64_t{0}) > now_ms) {
      line("    spot nodes are short: on demand instead for " +
           std::to_string((type.value("spot_short_until_ms", now_ms) - now_ms) / 1000) + " s more");
    }
    for (const OrderedJson& trouble :
         type.contains("troubles") ? type["troubles"] : OrderedJson::array()) {
      line("    " + trouble.value("capacity", "") + " has failed " + number(trouble, "failures") +
           " times; last: " + trouble.value("last", ""));
    }
  }
  if (!nodes.empty()) line("nodes:");
  for (std::size_t i = 0; i < nodes.size() && i < kNodesShown; ++i) {
    const OrderedJson& node = nodes[i];
    const std::string work = node.value("work", "");
    line("  " + node.value("id", "") + "  " + node.value("phase", "") + " for " +
         age(node, "since_ms", now_ms) + "  " + node.value("capacity", "") + "  " +
         (work.empty() ? node.value("reason", "") : work));
  }
  if (nodes.size() > kNodesShown)
    line("  and " + std::to_string(nodes.size() - kNodesShown) + " more");
  line("waiting:");
  for (const OrderedJson& report : list("demand")) {
    const bool is_met = report.value("unmet", std::int64_t{0}) == 0;
    line("  " + report.value("what", "") +
         (is_met
              ? ": nodes are there or on their way"
              : ": " + number(report, "unmet") + " have no place: " + report.value("reason", "")));
  }
  if (status.value("bound", std::int64_t{0}) > 0)
    line("  " + number(status, "bound") +
         " actors for one node, or for room in a bundle, which no new node would help");
  if (status.value("unlisted", std::int64_t{0}) > 0)
    line("  " + number(status, "unlisted") + " more, of other kinds than those above");
  for (const OrderedJson& why : list("holding_back"))
    line("  " + (why.is_string() ? why.get<std::string>() : ""));
  for (const auto& [key, title] :
       {std::pair("decisions", "decisions:"), {"failures", "failures:"}}) {
    const OrderedJson notes = list(key);
    if (!notes.empty()) line(title);
    for (std::size_t i = notes.size() > 10 ? notes.size() - 10 : 0; i < notes.size(); ++i)
      line("  " + age(notes[i], "at_ms", now_ms) + " ago: " + notes[i].value("text", ""));
  }
  return text;
}

}  // namespace placement
