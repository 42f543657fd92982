// Helpers of the commands: requests to a node of the cluster, and printing of the answers.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "placement/app/cli_text.h"
#include "runtime/control/cluster_client.h"
#include "runtime/control/node_client.h"
#include "runtime/core/printable_text.h"
#include "runtime/process/session.h"
#include "runtime/transport/blocking.h"

namespace placement {

/// Connects to a node of the cluster at `address` (or the one that find_cluster() finds), calls
/// ask(client, deadline, callback) and waits for the answer. Errors: those of find_cluster(), of
/// connecting, of the answer; kDeadlineExceeded when none came in 10 s.
template <class T, class Ask>
runtime::Result<T> ask_cluster(const std::string& address, Ask ask) {
  auto cluster = runtime::find_cluster(address);
  if (!cluster.ok()) return cluster.status();
  runtime::EventLoop loop;
  const runtime::Deadline deadline = runtime::deadline_after(std::chrono::seconds(10));
  auto client = runtime::NodeClient::connect(loop, *cluster, runtime::Role::kTool, deadline);
  if (!client.ok()) return client.status();
  return wait_for<T>(loop, deadline, [&](auto done) { ask(**client, deadline, std::move(done)); });
}

/// The state of the cluster at `address`. Errors as ask_cluster().
inline runtime::Result<runtime::ClusterState> fetch_state(const std::string& address) {
  return ask_cluster<runtime::ClusterState>(
      address, [](runtime::NodeClient& client, runtime::Deadline deadline, auto done) {
        runtime::ClusterClient(client).state(deadline, done);
      });
}

/// Tells the user; returns the exit code.
inline int fail(const runtime::Status& why) {
  std::fprintf(stderr, "error: %s\n", runtime::printable_text(why.message()).c_str());
  return 1;
}

inline void print_json(const nlohmann::ordered_json& json) {
  // Names come from users and need not be UTF-8.
  const std::string text =
      json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::printf("%s\n", runtime::printable_json(text).c_str());
}

}  // namespace placement
