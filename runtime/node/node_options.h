// NodeOptions: the options of a node, and those of its parts that follow from them.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/resource_map.h"
#include "runtime/node/autoscaler_process.h"
#include "runtime/node/departure.h"
#include "runtime/node/head_connection.h"
#include "runtime/node/memory_guard.h"
#include "runtime/node/node_jobs.h"
#include "runtime/node/node_ports.h"
#include "runtime/node/node_token.h"
#include "runtime/node/user_limits.h"
#include "runtime/node/worker_pool.h"
#include "runtime/observe/metrics_source.h"
#include "runtime/store/object_store.h"

namespace runtime {

/// Settings of a node and of its parts. Size: a field a flag of `starling start`.
struct NodeOptions {
  ClusterId cluster;
  NodeId node;
  std::string token;
  std::string next_token;  // a change to it was begun, and may have been recorded; empty: none
  /// Another token may be the cluster's next, or (`is_present`) is the cluster's: what lies on disk
  /// is to say so. On the loop. May be empty.
  NodeToken::Keep keep_token;
  Endpoint bind;                  // TCP; port 0 picks one
  std::string advertise_host;     // what other machines connect to; empty: the bound one
  std::vector<Endpoint> aliases;  // at which callers reach it too, through forwarded ports
  bool plain = false;             // nothing over TCP is encrypted
  std::filesystem::path session_dir;
  ResourceMap resources;
  Labels labels;
  std::uint64_t object_store_bytes = 0;  // 0: ObjectStore's default
  SpillOptions spill;                    // an empty folder: none
  MemoryGuardOptions memory;
  Endpoint head;                  // HOST:PORT of the node next to the head; not of that node itself
  bool is_head = false;           // that node: the head is a process next to it
  std::string program;            // starling, for the head's process
  std::filesystem::path journal;  // of the head; empty: what it knows ends with its process
  bool durable = false;  // the journal outlives this node, and another one may continue with it
  std::vector<std::string> autoscaler;  // arguments of `starling` for the process next to the head
                                        // that adds and removes nodes; empty: none
  std::chrono::milliseconds autoscaler_stop{
      0};           // how long that may take to remove them when the cluster stops
  NodeId replaces;  // an earlier node of this machine that is known to be dead
  HeadLinkOptions link;
  std::uint64_t log_limit = 0;  // bytes of logs that are kept; 0: LogKeeper's default
  std::uint64_t job_size_limit =
      0;                 // bytes of files that a submitted job may bring; 0: JobFiles' default
  std::string job_user;  // as whom jobs run that nothing proves the user of, on a node of root's;
                         // empty: they are refused
  UserLimits users;
  PreemptionOptions preemption;
  std::chrono::milliseconds drain_time{
      30'000};  // when this machine is about to be taken away, and the notice does not say how soon
  MetricsAccess metrics_access = MetricsAccess::kKey;
  MetricsProvider metrics;
  TlsFiles tls;  // of what it says over HTTP
};

/// What its parts share.
struct NodeSetting {
  Credentials credentials;
  std::string address;            // HOST:PORT
  LogRoom* logs = nullptr;        // null: logs have their own bounds only
  std::vector<std::string> gpus;  // what CUDA_VISIBLE_DEVICES has for each GPU of the node
};

NodePortsOptions ports_options(const NodeOptions& node);
ObjectStoreOptions store_options(const NodeOptions& node, const NodeSetting& setting);
WorkerPoolOptions pool_options(const NodeOptions& node, const NodeSetting& setting);
/// `cache`: where the node keeps what it fetches.
NodeJobsOptions jobs_options(const NodeOptions& node, const NodeSetting& setting,
                             const std::filesystem::path& cache);
DepartureOptions departure_options(const NodeOptions& node, const NodeSetting& setting);
HeadConnectionOptions head_options(const NodeOptions& node, const NodeSetting& setting);
AutoscalerProcessOptions autoscaler_options(const NodeOptions& node, const NodeSetting& setting);
/// What it says of itself when it joins.
NodeInfo node_info(const NodeOptions& node, const NodeSetting& setting);

}  // namespace runtime
