#include "placement/app/cli_list.h"

#include <algorithm>

#include "placement/app/cli_filter.h"
#include "placement/app/cli_jobs.h"
#include "placement/app/cli_nodes.h"
#include "placement/app/cli_objects.h"
#include "placement/app/cli_query.h"
#include "placement/app/cli_status.h"
#include "runtime/core/printable_text.h"

namespace placement {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKinds = "nodes, actors, workers, objects, jobs and placement-groups";

// The keys below are what scripts rely on: add, never rename.

Json worker_json(const runtime::WorkerInfo& worker) {
  return Json{{"id", worker.worker.hex()},
              {"node", worker.node.hex()},
              {"job", worker.job.is_none() ? "" : worker.job.hex()},
              {"pid", worker.pid},
              {"state", worker.state},
              {"actor", worker.actor.is_none() ? "" : worker.actor.hex()},
              {"class", worker.class_name},
              {"actors", worker.actors},
              {"memory_bytes", worker.memory_bytes},
              {"cpu_seconds", worker.cpu_seconds},
              {"threads", worker.threads},
              {"process", worker.process},
              {"age_ms", worker.age.count()}};
}

void print_worker(const runtime::WorkerInfo& worker) {
  const std::string what =
      worker.state == "shared" ? std::to_string(worker.actors) + " shared actors"
      : worker.actor.is_none() ? ""
                               : worker.class_name + " " + worker.actor.short_hex();
  say("  %s  %-8s pid %-7d node %s  %7.1f MiB  %8.1f s CPU  %3u threads  %-8s %s\n",
      worker.worker.short_hex().c_str(), worker.state.c_str(), worker.pid,
      worker.node.short_hex().c_str(), static_cast<double>(worker.memory_bytes) / (1 << 20),
      worker.cpu_seconds, worker.threads, worker.process.c_str(), what.c_str());
}

/// Lists items of a kind that the head gives all at once.
template <class T>
int list_state(const ListOptions& options, const Filters& filters,
               std::vector<T> runtime::ClusterState::*items) {
  if (runtime::Status status =
          check_filters(filters, to_json(T(), runtime::ClusterState()), options.kind);
      !status.ok())
    return fail(status);
  auto state = fetch_state(options.address);
  if (!state.ok()) return fail(state.status());
  Json list = Json::array();
  for (const T& item : (*state).*items) {
    Json json = to_json(item, *state);
    if (!matches(json, filters)) continue;
    options.json ? list.push_back(std::move(json)) : print_row(item, *state);
  }
  if (options.json) print_json(list);
  return 0;
}

int list_workers(const ListOptions& options, const Filters& filters) {
  if (runtime::Status status =
          check_filters(filters, worker_json(runtime::WorkerInfo()), "workers");
      !status.ok())
    return fail(status);
  auto nodes = NodeSet::connect(options.address);
  if (!nodes.ok()) return fail(nodes.status());
  Json list = Json::array();
  (*nodes)->ask_all<runtime::WorkerList>(
      runtime::control::ListWorkers{}, [&](const runtime::NodeInfo&, runtime::WorkerList workers) {
        for (const runtime::WorkerInfo& worker : workers) {
          Json json = worker_json(worker);
          if (!matches(json, filters)) continue;
          options.json ? list.push_back(std::move(json)) : print_worker(worker);
        }
      });
  if (options.json) print_json(list);
  return (*nodes)->report_silent() ? 1 : 0;
}

/// Writes an array piece by piece, as print_json() would write it whole.
class JsonArray {
 public:
  void add(const Json& item) {
    std::string text =
        runtime::printable_json(item.dump(2, ' ', false, Json::error_handler_t::replace));
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 3)
      text.insert(at + 1, "  ");
    std::printf("%s  %s", std::exchange(empty_, false) ? "[\n" : ",\n", text.c_str());
  }
  void end() { std::printf(empty_ ? "[]\n" : "\n]\n"); }

 private:
  bool empty_ = true;
};

/// Page by page: neither this process nor the head ever holds a hundred thousand at once.
int list_actors(const ListOptions& options, const Filters& filters) {
  runtime::control::ListActors request;
  request.filters = filters;
  if (!options.after.empty()) {
    auto after = runtime::ActorId::from_hex(options.after);
    if (!after.ok()) return fail(after.status().with_context("--after"));
    request.after = *after;
  }
  auto cluster = runtime::find_cluster(options.address);
  if (!cluster.ok()) return fail(cluster.status());
  runtime::EventLoop loop;
  auto client = runtime::NodeClient::connect(loop, *cluster, runtime::Role::kTool,
                                             runtime::deadline_after(std::chrono::seconds(10)));
  if (!client.ok()) return fail(client.status());
  JsonArray array;
  std::uint64_t shown = 0;
  bool more = true;
  while (more && (options.limit == 0 || shown < options.limit)) {
    if (options.limit != 0)
      request.limit = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(runtime::control::ListActors::kLimitMax, options.limit - shown));
    auto page = observe<runtime::ActorPage>(loop, **client, request);
    if (!page.ok()) return fail(page.status());
    for (const runtime::ActorState& actor : page->actors)
      options.json ? array.add(to_json(actor)) : print_row(actor);
    shown += page->actors.size();
    more = !page->next.is_none();
    request.after = page->next;
  }
  if (options.json) array.end();
  if (more) std::fprintf(stderr, "there are more: --after %s\n", request.after.hex().c_str());
  return 0;
}

}  // namespace

int list_command(const ListOptions& options) {
  auto filters = parse_filters(options.filters);
  if (!filters.ok()) return fail(filters.status());
  if (!options.state.empty()) filters->emplace_back("state", options.state);
  const bool pages = options.kind == "actors";
  if (!pages && (options.limit != 0 || !options.after.empty()))
    return fail(runtime::invalid_argument("--limit and --after are for actors; " + options.kind +
                                          " come all at once"));
  if (pages) return list_actors(options, *filters);
  if (options.kind == "nodes") return list_state(options, *filters, &runtime::ClusterState::nodes);
  if (options.kind == "workers") return list_workers(options, *filters);
  if (options.kind == "objects")
    return list_objects_command(options.address, options.json, *filters);
  if (options.kind == "jobs") return list_state(options, *filters, &runtime::ClusterState::jobs);
  if (options.kind == "placement-groups")
    return list_state(options, *filters, &runtime::ClusterState::groups);
  std::fprintf(stderr, "error: cannot list '%s'; there are %s\n", options.kind.c_str(), kKinds);
  return 2;
}

}  // namespace placement
