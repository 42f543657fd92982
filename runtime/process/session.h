// The files by which processes of one user find the clusters on this machine, and the folders those
// clusters live in (SessionFolder makes them):
//
//   ${XDG_RUNTIME_DIR:-/tmp}/starling-$UID/      0700
//     .starling                            the mark of a root; its content names the user
//     last                                 path of the node folder that `starling start` made last
//     <cluster, 8 digits>/token            0600; what every connection proves to know
//     <cluster>/<node, 8 digits>/lock      locked (flock) while the node lives; also the mark by
//                                          which a folder is known to be one that may be removed
//     <cluster>/<node>/node.json           SessionInfo of a running node
//     <cluster>/<node>/node.sock, *.sock   the node's and its workers' Unix sockets
//     <cluster>/<node>/logs/               node.log, worker-<id>.log, job-<id>.log; stay after a
//     stop
//
// Readers trust no file that another user could have put there, and change nothing.
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
  std::uint64_t pid_start = 0;  // its start time (clock ticks since boot): pids are used again
  std::string address;          // HOST:PORT
  std::string bound;            // HOST:PORT that it listens at: 0.0.0.0 where `address` is not
  std::string head_address;     // HOST:PORT of its cluster's head
  bool is_head = false;
  // Time to stop, in addition to the usual: for what the node must stop before itself.
  std::chrono::seconds stop_patience{0};
  std::string host;           // the machine's name, for messages
  std::string pid_scope;      // where `pid` is valid (pid_scope())
  std::filesystem::path dir;  // not in the file: where it was found
};

/// The user's folder of sessions: `starling-$UID` in XDG_RUNTIME_DIR or /tmp. If
/// STARLING_SESSION_ROOT is set, it is the folder that this names, or `starling-$UID` in it. It is
/// the folder itself if that does not exist yet, has the mark of this user's Starling, or holds a
/// living node of theirs.
std::filesystem::path session_root();

/// The name of a root's mark, and of the file that a living node has locked.
inline constexpr const char* kRootMark = ".starling";
inline constexpr const char* kNodeLock = "lock";

/// The content of node.json in a node's folder; empty if it is damaged or another user's.
std::optional<SessionInfo> read_session(const std::filesystem::path& dir);

/// The folders of this user's nodes below a root, living or not. Errors: kInvalidArgument (the
/// root is another user's, open to others, or a link).
Result<std::vector<std::filesystem::path>> node_folders(
    const std::filesystem::path& root = session_root());

/// Sessions of nodes that live, in the order of their folders. Errors: as node_folders().
Result<std::vector<SessionInfo>> find_sessions(const std::filesystem::path& root = session_root());
/// The same; none if the root cannot be trusted, which is logged.
std::vector<SessionInfo> running_sessions(const std::filesystem::path& root = session_root());

/// The node folder that `starling start` made last; empty: none.
std::string last_session(const std::filesystem::path& root = session_root());

/// The choice when neither an address nor a last session names the cluster.
enum class Fallback { kOnlyCluster, kNone };

/// Which node to talk to: `explicit_address` (HOST:PORT, in any way that leads to it), else
/// STARLING_ADDRESS, else the last session, else the fallback. "auto" counts as none. The token
/// comes from STARLING_TOKEN, else STARLING_TOKEN_FILE, else the session's folder. If the address
/// is the head's on another machine and a node of that cluster runs here, the answer is that node.
/// Errors: kNotFound (no cluster runs, with how to start one; or there is no token for the
/// address).
Result<ClusterAddress> find_cluster(const std::string& explicit_address,
                                    Fallback fallback = Fallback::kOnlyCluster);

/// The address of a session's node, with what to prove to it.
Result<ClusterAddress> address_of(const SessionInfo& session);
/// STARLING_TOKEN, else the file that STARLING_TOKEN_FILE names, else empty. Errors: the file
/// cannot be read, or is empty.
Result<std::string> token_from_environment();
/// Environment variables with which a process reads the token in that file. They count whatever is
/// in this process's own environment, whose token may have been replaced since.
std::vector<std::string> token_variables(const std::filesystem::path& file);
/// Errors: kNotFound, kInvalidArgument (not a file, empty).
Result<std::string> read_token_file(const std::string& file);

/// True while the node holds its lock, in whichever PID namespace it runs.
bool is_running(const SessionInfo& info);
/// Ends a living node's process at once. Errors: kInvalidArgument (it runs in another PID namespace
/// or on another machine, where its pid means another process or none), kNotFound (it has ended).
Status kill_node(const SessionInfo& info);
/// The scope in which this process's pid is valid: a boot of a machine and a PID namespace.
std::string pid_scope();
/// Start time of a process in clock ticks since boot; 0 if there is none.
std::uint64_t process_start_time(std::int32_t pid);

}  // namespace runtime
