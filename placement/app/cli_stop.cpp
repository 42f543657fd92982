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

namespace runtime {

namespace {

constexpr auto kAskTimeout = std::chrono::seconds(3);
// The head gives its nodes 8 s, and its own node's jobs 5 s and workers 1 s.
constexpr auto kEndMax = std::chrono::seconds(18);
constexpr auto kStopPoll = std::chrono::milliseconds(10);
constexpr auto kHearMax = std::chrono::seconds(1);
constexpr auto kEndingMax = std::chrono::seconds(2);

Status ask_to_stop(EventLoop& loop, const ClusterAddress& address,
                   std::unique_ptr<NodeClient>* kept) {
  auto client = NodeClient::connect(loop, address, Role::kTool, deadline_after(kAskTimeout));
  if (!client.ok()) return client.status();
  Deadline deadline = deadline_after(kAskTimeout);
  Status asked = wait_done(loop, deadline,
                           [&](auto done) { ClusterClient(**client).stop_node(deadline, done); });
  *kept = std::move(*client);
  return asked;
}

/// What it could not end, once it has closed the connection. True if there was anything.
bool say_what_is_left(const std::unique_ptr<NodeClient>& client) {
  if (!client) return false;
  // What it said last may still be on its way through this process.
  const Deadline deadline = deadline_after(kHearMax);
  while (!client->channel()->closed() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(kStopPoll);
  const std::string left = client->left_behind();
  if (!left.empty()) std::fprintf(stderr, "error: %s\n", printable_text(left).c_str());
  return !left.empty();
}

bool wait_until_stopped(const std::vector<SessionInfo>& sessions, Deadline deadline) {
  while (std::chrono::steady_clock::now() < deadline) {
    if (std::none_of(sessions.begin(), sessions.end(), is_running)) return true;
    std::this_thread::sleep_for(kStopPoll);
  }
  return std::none_of(sessions.begin(), sessions.end(), is_running);
}

/// A node that was asked in vain may have jobs that run, whatever kept it from answering; or it is
/// just ending.
bool may_be_killed(const SessionInfo& session, const Status& asked, bool force) {
  if (force || wait_until_stopped({session}, deadline_after(kEndingMax))) return true;
  std::fprintf(stderr,
               "error: node %s (pid %d) could not be asked to stop: %s; whether jobs run there is "
               "not known: starling stop --force kills it, with its jobs\n",
               session.address.c_str(), session.pid, printable_text(asked.message()).c_str());
  return false;
}

/// Nodes of this machine. The head comes first: it stops the others in order. `reached`: an error
/// where the jobs of the cluster could not be asked for; what was silent then and answers now may
/// have some.
int stop_here(EventLoop& loop, std::vector<SessionInfo> sessions, bool one_node, bool force,
              const Status& reached) {
  std::stable_sort(
      sessions.begin(), sessions.end(),
      [](const SessionInfo& a, const SessionInfo& b) { return a.is_head > b.is_head; });
  bool head_stops_them = sessions[0].is_head;
  std::vector<std::unique_ptr<NodeClient>> clients(sessions.size());
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    if (i > 0 && head_stops_them) break;
    auto address = address_of(sessions[i]);
    const bool is_known = force || reached.ok();
    Status asked = !address.ok() ? address.status()
                   : is_known    ? ask_to_stop(loop, *address, &clients[i])
                   : i == 0      ? reached
                                 : reached.with_context("the jobs of its cluster");
    if (!asked.ok() && address.ok() && asked.code() == ErrorCode::kInvalidArgument) {
      std::fprintf(stderr, "error: %s\n",
                   printable_text(asked.message()).c_str());  // a wrong token: not ours to kill
      return 1;
    }
    if (!asked.ok() && !may_be_killed(sessions[i], asked, force)) return 1;
    if (!asked.ok()) head_stops_them = false;
    if (!asked.ok() && is_running(sessions[i])) {
      std::fprintf(stderr, "node %s does not answer (%s): killing it\n",
                   sessions[i].address.c_str(), printable_text(asked.message()).c_str());
      if (Status killed = kill_node(sessions[i]); !killed.ok()) {  // its workers die with it
        std::fprintf(stderr, "error: %s\n", printable_text(killed.message()).c_str());
        if (killed.code() == ErrorCode::kInvalidArgument) return 1;
      }
    }
  }
  if (!wait_until_stopped(sessions, deadline_after(kEndMax + sessions[0].stop_patience))) {
    for (const SessionInfo& session : sessions) {
      if (!is_running(session)) continue;
      std::fprintf(stderr, "node %s (pid %d) does not end: killing it\n", session.address.c_str(),
                   session.pid);
      if (Status killed = kill_node(session); !killed.ok())
        std::fprintf(stderr, "error: %s\n", printable_text(killed.message()).c_str());
    }
    if (!wait_until_stopped(sessions, deadline_after(std::chrono::seconds(2)))) {
      std::fprintf(stderr, "error: some processes could not be ended\n");
      return 1;
    }
  }
  for (const SessionInfo& session : sessions) remove_session(session.dir);
  remove_dead_sessions();
  if (one_node) {
    std::printf("stopped node %s of cluster %s, which keeps running\n", sessions[0].address.c_str(),
                sessions[0].cluster.short_hex().c_str());
    return say_what_is_left(clients[0]) ? 1 : 0;
  }
  std::printf("stopped cluster %s: %zu node%s\n", sessions[0].cluster.short_hex().c_str(),
              sessions.size(), sessions.size() == 1 ? "" : "s");
  return say_what_is_left(clients[0]) ? 1 : 0;
}

int stop_elsewhere(EventLoop& loop, const ClusterAddress& address, bool force) {
  const Result<bool> may_end = may_end_jobs(loop, address, {}, force);
  if (may_end.ok() && !*may_end) return 1;
  std::unique_ptr<NodeClient> client;
  Status asked = may_end.ok() || force ? ask_to_stop(loop, address, &client) : may_end.status();
  if (!asked.ok()) {
    std::fprintf(stderr, "error: %s\n", printable_text(asked.message()).c_str());
    return 1;
  }
  Deadline deadline = deadline_after(kEndMax);
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
  auto found = find_cluster(wanted, named ? Fallback::kOnlyCluster : Fallback::kNone);
  if (!found.ok()) {
    std::fprintf(stderr, "error: %s\n", printable_text(found.status().message()).c_str());
    return 1;
  }
  EventLoop loop;
  std::vector<SessionInfo> sessions = running_sessions();
  // An address that is another machine's head must not end the node of that cluster which happens
  // to run here.
  const SessionInfo* exact = named ? session_at(sessions, wanted) : nullptr;
  if (named && (!exact || exact->address != found->address)) {
    ClusterAddress elsewhere = *found;
    elsewhere.address = wanted;
    elsewhere.unix_path.clear();
    return stop_elsewhere(loop, elsewhere, force);
  }
  bool one_node = named && !exact->is_head;
  const Result<bool> may_end = may_end_jobs(loop, *found, one_node ? exact->node : NodeId(), force);
  if (may_end.ok() && !*may_end) return 1;
  std::erase_if(sessions, [&](const SessionInfo& s) {
    return one_node ? s.address != found->address : s.cluster != found->cluster;
  });
  if (sessions.empty()) {
    std::fprintf(stderr, "error: %s has just ended\n", found->address.c_str());
    return 1;
  }
  return stop_here(loop, std::move(sessions), one_node, force, may_end.status());
}

}  // namespace runtime
