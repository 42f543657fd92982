// The files by which processes of one user find the clusters on this machine, and the folders those
// clusters live in:
//
//   ${XDG_RUNTIME_DIR:-/tmp}/starling-$UID/      0700
//     last                                       path of the node folder that `starling start` made
//     last <cluster, 8 digits>/token                  0600; what every connection proves to know
//     <cluster>/<node, 8 digits>/node.json       SessionInfo of a running node
//     <cluster>/<node>/node.sock, *.sock         the node's and its workers' Unix sockets
//     <cluster>/<node>/logs/                     node.log, worker-<id>.log, job-<id>.log; stay
//     after a stop
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/result.h"

namespace runtime {

/// How to reach a node, and what to prove to it.
struct ClusterAddress {
  std::string address;    // HOST:PORT
  std::string unix_path;  // set when the node is on this machine: preferred
  std::string token;
  ClusterId cluster;        // none: not known before connecting
  std::string session_dir;  // set when the node is on this machine
};

/// What a running node says about itself in node.json.
struct SessionInfo {
  ClusterId cluster;
  NodeId node;
  std::int32_t pid = 0;
  std::uint64_t pid_start =
      0;  // the process's start time (clock ticks since boot), since pids are used again
  std::string address;       // HOST:PORT
  std::string head_address;  // HOST:PORT of its cluster's head
  bool is_head = false;
  std::chrono::seconds stop_patience{
      0};  // beyond what a node takes to stop: for what it has to take down first
  std::filesystem::path dir;  // not in the file: where it was found
};

/// The user's folder of sessions. STARLING_SESSION_ROOT overrides it (tests).
std::filesystem::path session_root();

/// Makes `<root>/<cluster>/<node>/logs`, all 0700, and the token file when it is not there yet.
/// Errors: kInvalidArgument if a folder is not the user's own or socket paths below it would be too
/// long.
Result<std::filesystem::path> create_session(ClusterId cluster, NodeId node,
                                             const std::string& token);

/// Writes node.json in `info.dir`; `as_last` also points `last` there. Both atomically.
Status publish_session(const SessionInfo& info, bool as_last);

/// Removes node.json and the sockets; the token and `last` too when no other node needs them. Logs
/// stay.
void remove_session(const std::filesystem::path& dir);

/// Sessions of nodes that run. Folders of dead ones are cleaned on the way.
std::vector<SessionInfo> running_sessions();

/// What to take when neither a name nor a last session says which cluster.
enum class Fallback { kOnlyCluster, kNone };

/// Which node to talk to: `explicit_address` (HOST:PORT), else STARLING_ADDRESS, else the last
/// session, else the fallback. "auto" counts as none. The token comes from STARLING_TOKEN, else
/// STARLING_TOKEN_FILE, else the session's folder. If the address is the head's on another machine
/// and a node of that cluster runs here, the answer is that node. Errors: kNotFound (no cluster
/// runs, with how to start one; or there is no token for the address).
Result<ClusterAddress> find_cluster(const std::string& explicit_address,
                                    Fallback fallback = Fallback::kOnlyCluster);

/// How to reach the node of a session.
Result<ClusterAddress> address_of(const SessionInfo& session);
/// STARLING_TOKEN, else the file that STARLING_TOKEN_FILE names, else empty. Errors: the file
/// cannot be read, or is empty.
Result<std::string> token_from_environment();

/// True if the process that wrote this still runs.
bool is_running(const SessionInfo& info);
/// Start time of a process in clock ticks since boot; 0 if there is none.
std::uint64_t process_start_time(std::int32_t pid);

}  // namespace runtime
