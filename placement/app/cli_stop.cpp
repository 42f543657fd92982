#include "placement/app/cli_stop.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "placement/app/stop_check.h"
#include "runtime/control/cluster_client.h"
#include "runtime/control/node_client.h"
#include "runtime/core/printable_text.h"
#include "runtime/process/node_address.h"
#include "runtime/process/session.h"
#include "runtime/process/session_folder.h"
#include "runtime/transport/blocking.h"

namespace placement {

namespace {

constexpr auto kAskTimeout = std::chrono::seconds(3);
// The head gives its nodes 8 s, and its own node's jobs 5 s and workers 1 s.
constexpr auto kEndMax = std::chrono::seconds(18);
constexpr auto kStopPoll = std::chrono::milliseconds(10);
constexpr auto kHearMax = std::chrono::seconds(1);
constexpr auto kEndingMax = std::chrono::seconds(2);

runtime::Status ask_to_stop(runtime::EventLoop& loop, const runtime::ClusterAddress& address,
                            std::unique_ptr<runtime::NodeClient>* kept) {
  auto client = runtime::NodeClient::connect(loop, address, runtime::Role::kTool,
                                             runtime::deadline_after(kAskTimeout));
  if (!client.ok()) return client.status();
  runtime::Deadline deadline = runtime::deadline_after(kAskTimeout);
  runtime::Status asked = runtime::wait_done(loop, deadline, [&](auto done) {
    runtime::ClusterClient(**client).stop_node(deadline, done);
  });
  *kept = std::move(*client);
  return asked;
}

/// What it could not end, once it has closed the connection. True if there was anything.
bool say_what_is_left(const std::unique_ptr<runtime::NodeClient>& client) {
  if (!client) return false;
  // What it said last may still be on its way through this process.
  const runtime::Deadline deadline = runtime::deadline_after(kHearMax);
  while (!client->channel()->closed() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(kStopPoll);
  const std::string left = client->left_behind();
  if (!left.empty()) std::fprintf(stderr, "error: %s\n", runtime::printable_text(left).c_str());
  return !left.empty();
}

bool wait_until_stopped(const std::vector<runtime::SessionInfo>& sessions,
                        runtime::Deadline deadline) {
  while (std::chrono::steady_clock::now() < deadline) {
    if (std::none_of(sessions.begin(), sessions.end(), runtime::is_running)) return true;
    std::this_thread::sleep_for(kStopPoll);
  }
  return std::none_of(sessions.begin(), sessions.end(), runtime::is_running);
}

/// A node that was asked in vain may have jobs that run, whatever kept it from answering; or it is
/// just ending.
bool may_be_killed(const runtime::SessionInfo& session, const runtime::Status& asked, bool force) {
  if (force || wait_until_stopped({session}, runtime::deadline_after(kEndingMax))) return true;
  std::fprintf(stderr,
               "error: node %s (pid %d) could not be asked to stop: %s; whether jobs run there is "
               "not known. starling stop --force kills it, with its jobs\n",
               session.address.c_str(), session.pid,
               runtime::printable_text(asked.message()).c_str());
  return false;
}

/// Nodes of this machine. The head comes first: it stops the others in order. `reached`: an error
/// where the jobs of the cluster could not be asked for; what was silent then and answers now may
/// have some.
int stop_here(runtime::EventLoop& loop, std::vector<runtime::SessionInfo> sessions, bool one_node,
              bool force, const runtime::Status& reached) {
  std::stable_sort(sessions.begin(), sessions.end(),
                   [](const runtime::SessionInfo& a, const runtime::SessionInfo& b) {
                     return a.is_head > b.is_head;
                   });
  bool head_stops_them = sessions[0].is_head;
  std::vector<std::unique_ptr<runtime::NodeClient>> clients(sessions.size());
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    if (i > 0 && head_stops_them) break;
    auto address = address_of(sessions[i]);
    const bool is_known = force || reached.ok();
    runtime::Status asked = !address.ok() ? address.status()
                            : is_known    ? ask_to_stop(loop, *address, &clients[i])
                            : i == 0      ? reached
                                          : reached.with_context("the jobs of its cluster");
    if (!asked.ok() && address.ok() && asked.code() == runtime::ErrorCode::kInvalidArgument) {
      std::fprintf(
          stderr, "error: %s\n",
          runtime::printable_text(asked.message()).c_str());  // a wrong token: not ours to kill
      return 1;
    }
    if (!asked.ok() && !may_be_killed(sessions[i], asked, force)) return 1;
    if (!asked.ok()) head_stops_them = false;
    if (!asked.ok() && is_running(sessions[i])) {
      std::fprintf(stderr, "node %s does not answer (%s): killing it\n",
                   sessions[i].address.c_str(), runtime::printable_text(asked.message()).c_str());
      if (runtime::Status killed = runtime::kill_node(sessions[i]);
          !killed.ok()) {  // its workers die with it
        std::fprintf(stderr, "error: %s\n", runtime::printable_text(killed.message()).c_str());
        if (killed.code() == runtime::ErrorCode::kInvalidArgument) return 1;
      }
    }
  }
  if (!wait_until_stopped(sessions, runtime::deadline_after(kEndMax + sessions[0].stop_patience))) {
    for (const runtime::SessionInfo& session : sessions) {
      if (!runtime::is_running(session)) continue;
      std::fprintf(stderr, "node %s (pid %d) does not end: killing it\n", session.address.c_str(),
                   session.pid);
      if (runtime::Status killed = runtime::kill_node(session); !killed.ok())
        std::fprintf(stderr, "error: %s\n", runtime::printable_text(killed.message()).c_str());
    }
    if (!wait_until_stopped(sessions, runtime::deadline_after(std::chrono::seconds(2)))) {
      std::fprintf(stderr, "error: some processes could not be ended\n");
      return 1;
    }
  }
  for (const runtime::SessionInfo& session : sessions) runtime::remove_session(session.dir);
  runtime::remove_dead_sessions();
  if (one_node) {
    std::printf("stopped node %s of cluster %s, which keeps running\n", sessions[0].address.c_str(),
                sessions[0].cluster.short_hex().c_str());
    return say_what_is_left(clients[0]) ? 1 : 0;
  }
  std::printf("stopped cluster %s: %zu node%s\n", sessions[0].cluster.short_hex().c_str(),
              sessions.size(), sessions.size() == 1 ? "" : "s");
  return say_what_is_left(clients[0]) ? 1 : 0;
}

int stop_elsewhere(runtime::EventLoop& loop, const runtime::ClusterAddress& address, bool force) {
  const runtime::Result<bool> may_end = may_end_jobs(loop, address, {}, force);
  if (may_end.ok() && !*may_end) return 1;
  std::unique_ptr<runtime::NodeClient> client;
  runtime::Status asked =
      may_end.ok() || force ? ask_to_stop(loop, address, &client) : may_end.status();
  if (!asked.ok()) {
    std::fprintf(stderr, "error: %s\n", runtime::printable_text(asked.message()).c_str());
    return 1;
  }
  runtime::Deadline deadline = runtime::deadline_after(kEndMax);
  while (!client->channel()->closed() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(kStopPoll);
  if (!client->channel()->closed()) {
    std::fprintf(stderr,
                 "error: %s was asked to stop, and has not within %lld s; it may still be removing "
                 "nodes: see its log\n",
                 address.address.c_str(), static_cast<long long>(kEndMax.count()));
    return 1;
  }
  std::printf("asked %s to stop; it has closed its connection\n", address.address.c_str());
  return say_what_is_left(client) ? 1 : 0;
}

}  // namespace

int stop_command(const std::string& explicit_address, bool force) {
  const char* variable = std::getenv("STARLING_ADDRESS");
  std::string wanted = explicit_address.empty() && variable ? variable : explicit_address;
  bool named = !wanted.empty() && wanted != "auto";
  // Without a name, only what was started last: a second `stop` must not take the next cluster.
  auto found = runtime::find_cluster(
      wanted, named ? runtime::Fallback::kOnlyCluster : runtime::Fallback::kNone);
  if (!found.ok()) {
    std::fprintf(stderr, "error: %s\n", runtime::printable_text(found.status().message()).c_str());
    return 1;
  }
  runtime::EventLoop loop;
  std::vector<runtime::SessionInfo> sessions = runtime::running_sessions();
  // An address that is another machine's head must not end the node of that cluster which happens
  // to run here.
  const runtime::SessionInfo* exact = named ? runtime::session_at(sessions, wanted) : nullptr;
  if (named && (!exact || exact->address != found->address)) {
    runtime::ClusterAddress elsewhere = *found;
    elsewhere.address = wanted;
    elsewhere.unix_path.clear();
    return stop_elsewhere(loop, elsewhere, force);
  }
  bool one_node = named && !exact->is_head;
  const runtime::Result<bool> may_end =
      may_end_jobs(loop, *found, one_node ? exact->node : runtime::NodeId(), force);
  if (may_end.ok() && !*may_end) return 1;
  std::erase_if(sessions, [&](const runtime::SessionInfo& s) {
    return one_node ? s.address != found->address : s.cluster != found->cluster;
  });
  if (sessions.empty()) {
    std::fprintf(stderr, "error: %s has just ended\n", found->address.c_str());
    return 1;
  }
  return stop_here(loop, std::move(sessions), one_node, force, may_end.status());
}

}  // namespace placement
