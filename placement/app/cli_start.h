// `starling start`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "placement/app/cli_amounts.h"
#include "runtime/node/user_limits.h"
#include "runtime/observe/metrics_source.h"

namespace placement {

/// Size: a field a flag of `starling start`.
struct StartOptions {
  bool head = false;
  std::string address;      // of the head to join, HOST:PORT
  std::optional<int> port;  // 0 to 65535; default: kDefaultPort for a head, any for others; 0: any
  std::string bind;         // empty: loopback for a head, towards the head for others
  std::string advertise;    // empty: what is bound
  std::vector<std::string> aliases;  // HOST or HOST:PORT, at which others reach it too
  bool plain = false;                // nothing over TCP is encrypted
  CliAmounts amounts;                // default: the machine's
  std::vector<std::string> labels;   // KEY=VALUE
  std::uint64_t object_store_bytes = 0;
  std::string journal;     // folder of the head's; empty: one that goes with the cluster
  std::string autoscaler;  // its configuration, which has been checked; empty: none
  std::chrono::milliseconds autoscaler_stop{0};  // how long it may take to remove its nodes
  std::string spill_dir;                         // empty: in the session folder
  std::optional<std::uint64_t>
      spill_limit;  // bytes; default: half of what the disk has left; 0: spill nothing
  double memory_threshold = 0.95;    // 0: no worker is stopped for want of memory
  std::uint64_t log_limit = 0;       // bytes of logs that a node keeps; 0: the default
  std::uint64_t job_size_limit = 0;  // bytes of a submitted job's files; 0: the default
  std::string job_user;  // as whom jobs run that nothing proves the user of, on a node of root's
  runtime::UserLimits users;
  std::string drain_deadline = "30s";  // how long SIGTERM gives the node; 0: it stops at once
  // What says that this machine is about to be taken away; empty: nothing of that kind.
  std::string preemption_file;
  std::string preemption_command;
  std::string preemption_url;
  std::string preemption_poll = "1s";
  std::string metrics = "key";    // who may read them at the node's port: "key", "open" or "off"
  std::string tls_cert, tls_key;  // PEM files, for HTTPS; empty: HTTP within the machine alone
  bool block = false;
  bool is_private =
      false;  // for one program: foreground, not the "last" cluster, ends with its parent
};

inline constexpr int kDefaultPort = 6399;

/// Returns the exit code: 0 once the node runs (in the foreground: once it was asked to stop), 1
/// with a message on stderr.
int start_command(const StartOptions& options, const runtime::MetricsProvider& metrics = {});

}  // namespace placement
