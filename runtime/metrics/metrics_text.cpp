#include "runtime/metrics/metrics_text.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <sstream>

#include "runtime/core/version.h"
#include "runtime/observe/activity_layout.h"

namespace runtime {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

/// One metric: which of the report's numbers it has, by the values of its label.
struct Entry {
  const char* name;
  MetricType type;
  const char* help;
  const char* label;  // null: none
  struct Value {
    const char* number;
    const char* label;
  };
  std::vector<Value> values;
};

std::vector<Entry> worker_entries() {
  return {
      {"starling_actors",
       MetricType::Gauge,
       "Actors on this node",
       "state",
       {{"actors_serving", "alive"}, {"actors_starting", "starting"}}},
      {"starling_workers",
       MetricType::Gauge,
       "Worker processes",
       "state",
       {{"workers_idle", "idle"},
        {"workers_starting", "starting"},
        {"workers_actor", "actor"},
        {"workers_shared", "shared"},
        {"workers_ending", "ending"}}},
      {"starling_worker_starts_total",
       MetricType::Counter,
       "Worker processes that were started",
       nullptr,
       {{"worker_starts", ""}}},
      {"starling_worker_ends_total",
       MetricType::Counter,
       "Worker processes that ended",
       "how",
       {{"worker_ends_ended", "ended"},
        {"worker_ends_failed", "failed"},
        {"worker_ends_crashed", "crashed"}}},
      {"starling_worker_memory_bytes",
       MetricType::Gauge,
       "Memory of the worker processes that is not shared",
       nullptr,
       {{"worker_memory_bytes", ""}}},
      {"starling_worker_cpu_seconds",
       MetricType::Gauge,
       "CPU time of the worker processes that run now",
       nullptr,
       {{"worker_cpu_seconds", ""}}},
  };
}

std::vector<Entry> store_entries() {
  return {
      {"starling_object_store_capacity_bytes",
       MetricType::Gauge,
       "Shared memory for objects",
       nullptr,
       {{"store_capacity_bytes", ""}}},
      {"starling_object_store_bytes",
       MetricType::Gauge,
       "The object store's memory in use",
       "use",
       {{"store_leased_bytes", "leased"},
        {"store_orphaned_bytes", "orphaned"},
        {"store_published_bytes", "published"},
        {"store_replica_bytes", "replica"},
        {"store_retained_bytes", "retained"}}},
      {"starling_object_store_spilled_bytes",
       MetricType::Gauge,
       "Objects on disk",
       nullptr,
       {{"store_spilled_bytes", ""}}},
      {"starling_object_store_wanted_bytes",
       MetricType::Gauge,
       "Bytes that callers in line for room ask for",
       nullptr,
       {{"store_wanted_bytes", ""}}},
      {"starling_object_store_pins",
       MetricType::Gauge,
       "Readers of objects",
       nullptr,
       {{"store_pins", ""}}},
      {"starling_object_store_spills_total",
       MetricType::Counter,
       "Ranges written to disk",
       nullptr,
       {{"store_spills", ""}}},
      {"starling_object_store_restores_total",
       MetricType::Counter,
       "Ranges brought back from disk",
       nullptr,
       {{"store_restores", ""}}},
      {"starling_transferred_bytes_total",
       MetricType::Counter,
       "Bytes of objects between nodes",
       "direction",
       {{"store_sent_bytes", "sent"}, {"store_fetched_bytes", "fetched"}}},
  };
}

std::vector<Entry> connection_entries() {
  return {
      {"starling_connections",
       MetricType::Gauge,
       "Connections at this node's port and socket",
       "role",
       {{"connections_node", "node"},
        {"connections_worker", "worker"},
        {"connections_driver", "driver"},
        {"connections_tool", "tool"}}},
      {"starling_connections_refused_total",
       MetricType::Counter,
       "Connections that proved no token, or none in time",
       nullptr,
       {{"connections_refused", ""}}},
      {"starling_submitted_jobs",
       MetricType::Gauge,
       "Submitted programs that run on this node",
       nullptr,
       {{"jobs_submitted_running", ""}}},
      {"starling_head_up",
       MetricType::Gauge,
       "Whether this node is connected with the head",
       nullptr,
       {{"head_up", ""}}},
      {"starling_head_reconnects_total",
       MetricType::Counter,
       "Connections with the head after the first",
       nullptr,
       {{"head_reconnects", ""}}},
  };
}

std::vector<Entry> machine_entries() {
  return {
      {"starling_memory_guard_stops_total",
       MetricType::Counter,
       "Workers stopped since the node ran short of memory",
       nullptr,
       {{"memory_guard_stops", ""}}},
      {"starling_node_memory_used_bytes",
       MetricType::Gauge,
       "Memory in use, of the machine or the cgroup, whichever has less left",
       nullptr,
       {{"memory_used_bytes", ""}}},
      {"starling_node_memory_limit_bytes",
       MetricType::Gauge,
       "Memory there is",
       nullptr,
       {{"memory_limit_bytes", ""}}},
      {"starling_node_cpus",
       MetricType::Gauge,
       "CPUs that this node may use",
       nullptr,
       {{"cpus", ""}}},
      {"starling_node_cpu_busy_seconds_total",
       MetricType::Counter,
       "Busy time of all of the machine's CPUs",
       nullptr,
       {{"machine_busy_seconds", ""}}},
      {"process_cpu_seconds_total",
       MetricType::Counter,
       "CPU time of the node's process",
       nullptr,
       {{"process_cpu_seconds", ""}}},
      {"process_resident_memory_bytes",
       MetricType::Gauge,
       "Resident memory of the node's process",
       nullptr,
       {{"process_resident_bytes", ""}}},
      {"process_open_fds",
       MetricType::Gauge,
       "Open descriptors of the node's process",
       nullptr,
       {{"process_open_files", ""}}},
      {"starling_draining",
       MetricType::Gauge,
       "Whether this node is being drained",
       nullptr,
       {{"draining", ""}}},
  };
}

// In the order in which they are printed.
const std::vector<Entry>& node_entries() {
  static const std::vector<Entry> entries = [] {
    std::vector<Entry> all = worker_entries();
    for (const auto& part : {store_entries(), connection_entries(), machine_entries()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return entries;
}

const std::vector<Entry>& head_entries() {
  static const std::vector<Entry> entries = {
      {"starling_cluster_nodes",
       MetricType::Gauge,
       "Nodes of the cluster",
       "state",
       {{"nodes", "member"}, {"nodes_connected", "connected"}, {"nodes_draining", "draining"}}},
      {"starling_cluster_actors",
       MetricType::Gauge,
       "Actors of the cluster; of dead ones those that are remembered",
       "state",
       {{"actors_pending", "pending"},
        {"actors_starting", "starting"},
        {"actors_alive", "alive"},
        {"actors_dead", "dead"}}},
      {"starling_cluster_actors_waiting",
       MetricType::Gauge,
       "Actors that wait for a place",
       nullptr,
       {{"actors_waiting", ""}}},
      {"starling_cluster_actor_restarts",
       MetricType::Gauge,
       "Restarts of the actors that are known",
       nullptr,
       {{"actor_restarts", ""}}},
      {"starling_cluster_placement_groups",
       MetricType::Gauge,
       "Placement groups",
       "state",
       {{"groups_placed", "placed"}, {"groups_pending", "pending"}}},
      {"starling_cluster_jobs",
       MetricType::Gauge,
       "Jobs; of ended ones those that are remembered",
       "state",
       {{"jobs_running", "running"}, {"jobs_ended", "ended"}}},
      {"starling_drains_total",
       MetricType::Counter,
       "Drains that the head's process began, or went on with since it was started",
       nullptr,
       {{"drains", ""}}},
      {"starling_leases_missed_total",
       MetricType::Counter,
       "Nodes that were declared dead since they were silent",
       nullptr,
       {{"leases_missed", ""}}},
      {"starling_node_returns_total",
       MetricType::Counter,
       "Nodes that connected with the head again",
       nullptr,
       {{"node_returns", ""}}},
      {"starling_journal_bytes",
       MetricType::Gauge,
       "The journal's size on disk",
       nullptr,
       {{"journal_bytes", ""}}},
      {"starling_journal_waiting",
       MetricType::Gauge,
       "Batches that are not recorded yet",
       nullptr,
       {{"journal_waiting", ""}}},
      {"starling_journal_trouble",
       MetricType::Gauge,
       "Whether the journal cannot be written to at present",
       nullptr,
       {{"journal_trouble", ""}}},
  };
  return entries;
}

void append(std::vector<MetricFamily>& to, const std::vector<Entry>& entries,
            const Numbers& numbers) {
  for (const Entry& entry : entries) {
    MetricFamily family{entry.name, entry.help, entry.type, {}};
    for (const Entry::Value& value : entry.values) {
      auto number = numbers.find(value.number);
      if (number == numbers.end()) continue;
      ClientMetric metric;
      if (entry.label) metric.label.push_back({entry.label, value.label});
      (entry.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) =
          number->second;
      family.metric.push_back(std::move(metric));
    }
    if (!family.metric.empty()) to.push_back(std::move(family));
  }
}

ClientMetric histogram(const std::vector<std::uint64_t>& buckets, double sum) {
  ClientMetric metric;
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < activity::kBuckets; ++i) {
    so_far += i < buckets.size() ? buckets[i] : 0;
    const bool last = i + 1 == activity::kBuckets;
    metric.histogram.bucket.push_back(
        {so_far, last ? std::numeric_limits<double>::infinity() : activity::kLatencyBounds[i]});
  }
  metric.histogram.sample_count = so_far;
  metric.histogram.sample_sum = sum;
  return metric;
}

void append_classes(std::vector<MetricFamily>& to, const std::vector<ClassLoad>& classes) {
  MetricFamily took{"starling_call_seconds",
                    "How long calls ran, by the class of their actor",
                    MetricType::Histogram,
                    {}};
  MetricFamily failed{
      "starling_call_failures_total", "Calls that ended in an error", MetricType::Counter, {}};
  MetricFamily waiting{
      "starling_calls_waiting", "Calls in line before actors", MetricType::Gauge, {}};
  MetricFamily actors{"starling_class_actors", "Actors by class", MetricType::Gauge, {}};
  for (const ClassLoad& load : classes) {
    ClientMetric times = histogram(load.buckets, static_cast<double>(load.sum_ns) * 1e-9), failures,
                 line, living;
    failures.counter.value = static_cast<double>(load.failed);
    line.gauge.value = static_cast<double>(load.waiting);
    living.gauge.value = static_cast<double>(load.actors);
    for (ClientMetric* metric : {&times, &failures, &line, &living})
      metric->label.push_back({"class", load.name});
    took.metric.push_back(std::move(times));
    failed.metric.push_back(std::move(failures));
    waiting.metric.push_back(std::move(line));
    actors.metric.push_back(std::move(living));
  }
  for (MetricFamily* family : {&took, &failed, &waiting, &actors}) {
    if (!family->metric.empty()) to.push_back(std::move(*family));
  }
}

void append_histogram(std::vector<MetricFamily>& to, const char* name, const char* help,
                      const std::vector<std::uint64_t>& buckets, double sum) {
  MetricFamily family{name, help, MetricType::Histogram, {}};
  family.metric.push_back(histogram(buckets, sum));
  to.push_back(std::move(family));
}

}  // namespace

std::string metrics_text(const MetricsReport& report) {
  std::vector<MetricFamily> families;
  MetricFamily info{"starling_node_info", "Which node this is", MetricType::Gauge, {}};
  ClientMetric self;
  self.label = {{"node", report.load.node.hex()},
                {"version", kRelease},
                {"head", report.is_head ? "true" : "false"}};
  self.gauge.value = 1;
  info.metric.push_back(std::move(self));
  families.push_back(std::move(info));
  append(families, node_entries(), report.load.numbers);
  append_classes(families, report.load.classes);
  append_histogram(families, "starling_worker_start_seconds",
                   "From the start of a worker process until it had connected",
                   report.worker_starts.buckets,
                   static_cast<double>(report.worker_starts.sum_ns) * 1e-9);
  append_histogram(families, "starling_fetch_seconds",
                   "How long objects of other nodes were on their way", report.fetches.buckets,
                   static_cast<double>(report.fetches.sum_ns) * 1e-9);
  if (report.is_head) {
    Numbers up{{"head_answers", report.head.empty() ? 0.0 : 1.0}};
    append(families,
           {{"starling_head_answers",
             MetricType::Gauge,
             "Whether the head's process answered this scrape",
             nullptr,
             {{"head_answers", ""}}}},
           up);
    append(families, head_entries(), report.head);
  }
  if (auto seconds = report.head.find("journal_seconds"); seconds != report.head.end()) {
    std::vector<std::uint64_t> buckets(activity::kBuckets);
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      auto bucket = report.head.find("journal_bucket_" + std::to_string(i));
      if (bucket != report.head.end()) buckets[i] = static_cast<std::uint64_t>(bucket->second);
    }
    append_histogram(families, "starling_journal_record_seconds",
                     "From a change until the journal had it", buckets, seconds->second);
  }
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

}  // namespace runtime
