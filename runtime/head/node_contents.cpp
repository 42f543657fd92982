#include "runtime/head/node_contents.h"

#include <algorithm>
#include <iterator>

namespace runtime {

namespace {

constexpr std::ptrdiff_t kActorsNamedMax = 3;  // of those that keep a node

std::string counted(std::ptrdiff_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::ptrdiff_t jobs_on(const ClusterTables& tables, NodeId node) {
  return std::count_if(tables.jobs().all().begin(), tables.jobs().all().end(),
                       [&](const auto& entry) {
                         return entry.second.info.node == node && entry.second.info.running;
                       });
}

}  // namespace

bool is_empty(const ClusterTables& tables, NodeId node) {
  return tables.actors().started_on(node).empty() && jobs_on(tables, node) == 0;
}

std::string what_keeps(const ClusterTables& tables, NodeId node) {
  const std::set<ActorId>& there = tables.actors().started_on(node);
  std::string named;
  for (auto id = there.begin();
       id != there.end() && std::distance(there.begin(), id) < kActorsNamedMax; ++id) {
    const ActorRecord& record = *tables.actors().find(*id);
    named += (named.empty() ? "" : "; ") + record.spec.class_name + " " + id->short_hex();
    if (record.moving)
      named += " is moving";
    else if (!record.pending_reason.empty())
      named += ": " + record.pending_reason;
  }
  std::string text;
  if (!there.empty())
    text = counted(std::ssize(there), "actor") + " (" + named +
           (std::ssize(there) > kActorsNamedMax ? "; ..." : "") + ")";
  if (const std::ptrdiff_t jobs = jobs_on(tables, node); jobs > 0)
    text += (text.empty() ? "" : ", ") + counted(jobs, "job");
  return text;
}

}  // namespace runtime
