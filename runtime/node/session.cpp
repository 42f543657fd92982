#include "runtime/node/session.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>

#include "runtime/core/environment.h"
#include "runtime/core/json.h"
#include "runtime/core/log.h"
#include "runtime/node/file_util.h"
#include "runtime/transport/endpoint.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kSmallFileBytesMax = 64 << 10;
// Folders of ended nodes keep their logs this long.
constexpr auto kLogsKept = std::chrono::hours(24 * 7);
constexpr std::chrono::seconds kStopPatienceMax = std::chrono::minutes(10);
// The longest socket name in a session: "w-" and 16 digits of a worker's id and ".sock".
constexpr std::size_t kSocketNameBytesMax = 24;

std::string environment(const char* name) {
  const char* value = environment_variable(name);
  return value ? value : "";
}

std::string trimmed_token(std::string text) {
  constexpr const char* kBlanks = " \t\r\n";
  text.erase(text.find_last_not_of(kBlanks) + 1);
  return text.erase(0, text.find_first_not_of(kBlanks));
}

std::optional<SessionInfo> read_session(const fs::path& dir) {
  auto content = read_file(dir / "node.json", kSmallFileBytesMax);
  if (!content.ok()) return std::nullopt;
  auto json = parse_json(*content);
  if (!json.is_object()) return std::nullopt;
  auto text = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
  };
  auto number = [&](const char* key) {
    return json.contains(key) && json[key].is_number() ? json[key].get<std::int64_t>() : 0;
  };
  auto cluster = ClusterId::from_hex(text("cluster"));
  auto node = NodeId::from_hex(text("node"));
  if (!cluster.ok() || !node.ok()) return std::nullopt;
  SessionInfo info;
  info.cluster = *cluster;
  info.node = *node;
  info.pid = static_cast<std::int32_t>(number("pid"));
  info.pid_start = static_cast<std::uint64_t>(number("pid_start"));
  info.address = text("address");
  info.head_address = text("head_address");
  info.is_head = json.value("is_head", false);
  info.stop_patience = std::chrono::seconds(
      std::clamp<std::int64_t>(number("stop_patience_s"), 0, kStopPatienceMax.count()));
  info.dir = dir;
  return info;
}

/// Calls `visit` with every node folder under the root.
template <class Visit>
void for_each_node_folder(Visit visit) {
  std::error_code error;
  for (fs::directory_iterator cluster(session_root(), error), end; !error && cluster != end;
       cluster.increment(error)) {
    if (!cluster->is_directory(error)) continue;
    std::error_code inner;
    for (fs::directory_iterator node(cluster->path(), inner); !inner && node != end;
         node.increment(inner)) {
      if (node->is_directory(inner)) visit(node->path());
    }
  }
}

void remove_run_files(const fs::path& dir) {
  std::error_code error;
  fs::remove(dir / "node.json", error);
  fs::remove_all(dir / "journal",
                 error);  // that of a head goes with its node, unless it was given a folder
  for (fs::directory_iterator file(dir, error), end; !error && file != end; file.increment(error)) {
    std::error_code ignored;
    if (file->path().extension() == ".sock") fs::remove(file->path(), ignored);
  }
}

void remove_old_logs() {
  auto now = fs::file_time_type::clock::now();
  for_each_node_folder([&](const fs::path& dir) {
    std::error_code error;
    if (fs::exists(dir / "node.json", error)) return;
    auto written = fs::last_write_time(dir, error);
    if (error || now - written < kLogsKept) return;
    fs::remove_all(dir, error);
    fs::remove(dir.parent_path(), error);  // succeeds only when it is empty
  });
}

/// After the end of the node in `dir`: its cluster's token goes with the last of its nodes, and
/// `last` goes on to another of them.
void forget(const fs::path& dir, const std::vector<SessionInfo>& running) {
  fs::path cluster_dir = dir.parent_path();
  std::optional<fs::path> sibling;
  for (const SessionInfo& other : running) {
    if (other.dir.parent_path() == cluster_dir && other.dir != dir) sibling = other.dir;
  }
  std::error_code error;
  if (!sibling) fs::remove(cluster_dir / "token", error);
  auto last = read_file(session_root() / "last", kSmallFileBytesMax);
  if (!last.ok() || trimmed_token(*last) != dir.string()) return;
  if (sibling) {
    // What was started last is gone; its cluster is still the one that commands mean.
    Status status = write_file_atomic(session_root() / "last", sibling->string() + "\n", 0600);
    if (status.ok()) return;
  }
  fs::remove(session_root() / "last", error);
}

Status no_cluster(const std::string& detail) {
  return not_found(detail +
                   "; start one with `starling start --head`, or name one with --address HOST:PORT "
                   "or STARLING_ADDRESS");
}

}  // namespace

fs::path session_root() {
  if (std::string root = environment("STARLING_SESSION_ROOT"); !root.empty()) return root;
  std::string base = environment("XDG_RUNTIME_DIR");
  if (base.empty() || ::access(base.c_str(), W_OK | X_OK) != 0) base = "/tmp";
  return fs::path(base) / ("starling-" + std::to_string(::geteuid()));
}

Result<fs::path> create_session(ClusterId cluster, NodeId node, const std::string& token) {
  fs::path root = session_root();
  fs::path cluster_dir = root / cluster.short_hex();
  fs::path dir = cluster_dir / node.short_hex();
  if (dir.string().size() + 1 + kSocketNameBytesMax >= sizeof(sockaddr_un::sun_path)) {
    return invalid_argument("the session folder " + dir.string() +
                            " is too long for Unix sockets; point " +
                            (environment_variable("STARLING_SESSION_ROOT") ? "STARLING_SESSION_ROOT"
                                                                           : "XDG_RUNTIME_DIR") +
                            " to a folder with a shorter name");
  }
  remove_old_logs();
  for (const fs::path& folder : {root, cluster_dir, dir, dir / "logs"}) {
    if (Status status = make_private_folder(folder); !status.ok()) return status;
  }
  if (Status status = write_file_atomic(cluster_dir / "token", token, 0600); !status.ok())
    return status;
  return dir;
}

Status publish_session(const SessionInfo& info, bool as_last) {
  nlohmann::json json{{"cluster", info.cluster.hex()},
                      {"node", info.node.hex()},
                      {"pid", info.pid},
                      {"pid_start", info.pid_start},
                      {"address", info.address},
                      {"head_address", info.head_address},
                      {"is_head", info.is_head},
                      {"stop_patience_s", info.stop_patience.count()}};
  if (Status status = write_file_atomic(info.dir / "node.json", json.dump(2) + "\n", 0600);
      !status.ok())
    return status;
  if (!as_last) return {};
  return write_file_atomic(session_root() / "last", info.dir.string() + "\n", 0600);
}

void remove_session(const fs::path& dir) {
  remove_run_files(dir);
  forget(dir, running_sessions());
}

std::vector<SessionInfo> running_sessions() {
  std::vector<SessionInfo> sessions;
  std::vector<fs::path> dead;
  for_each_node_folder([&](const fs::path& dir) {
    auto info = read_session(dir);
    if (!info) return;
    if (is_running(*info))
      sessions.push_back(std::move(*info));
    else
      dead.push_back(dir);
  });
  std::sort(sessions.begin(), sessions.end(),
            [](const SessionInfo& a, const SessionInfo& b) { return a.dir < b.dir; });
  for (const fs::path& dir : dead) {
    remove_run_files(dir);
    forget(dir, sessions);
  }
  return sessions;
}

namespace {

/// A pipe that nobody writes to would keep every command waiting; a token that others can read is
/// no secret.
Status check_token_file(const std::string& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return errno_status(errno, file);
  if (!S_ISREG(found.st_mode)) return invalid_argument(file + " is not a file");
  static std::once_flag once;
  if ((found.st_mode & 077) != 0) {
    std::call_once(once, [&] {
      LOG(warn, "the token in {} can be read or changed by other users (mode {:o}): chmod 600 it",
          file, found.st_mode & 0777U);
    });
  }
  return {};
}

}  // namespace

Result<std::string> token_from_environment() {
  // A line's end, or blanks around it, came with how it was put there: a file is read without them,
  // too.
  if (const std::string token = environment("STARLING_TOKEN"); !token.empty()) {
    if (trimmed_token(token).empty())
      return invalid_argument(
          "STARLING_TOKEN is blank; set it to the cluster's token, or unset it");
    return trimmed_token(token);
  }
  std::string file = environment("STARLING_TOKEN_FILE");
  if (file.empty()) return std::string();
  if (Status status = check_token_file(file); !status.ok())
    return status.with_context("STARLING_TOKEN_FILE");
  auto content = read_file(file, kSmallFileBytesMax);
  if (!content.ok()) return content.status().with_context("STARLING_TOKEN_FILE");
  std::string token = trimmed_token(*content);
  // Whoever names a file means to have a token, and is not to get a cluster with another one.
  if (token.empty())
    return invalid_argument("STARLING_TOKEN_FILE: " + file +
                            " is empty; put the cluster's token there, or unset the variable");
  return token;
}

Result<ClusterAddress> address_of(const SessionInfo& session) {
  ClusterAddress address;
  address.address = session.address;
  address.unix_path = (session.dir / "node.sock").string();
  address.cluster = session.cluster;
  address.session_dir = session.dir.string();
  auto token = token_from_environment();
  if (!token.ok()) return token.status();
  address.token = *token;
  if (address.token.empty()) {
    auto content = read_file(session.dir.parent_path() / "token", kSmallFileBytesMax);
    if (!content.ok()) return content.status().with_context("the cluster's token");
    address.token = trimmed_token(*content);
  }
  return address;
}

Result<ClusterAddress> find_cluster(const std::string& explicit_address, Fallback fallback) {
  std::string wanted =
      explicit_address.empty() ? environment("STARLING_ADDRESS") : explicit_address;
  if (wanted == "auto") wanted.clear();
  if (wanted.starts_with("localhost:")) wanted.replace(0, 9, "127.0.0.1");
  std::vector<SessionInfo> sessions = running_sessions();
  if (!wanted.empty()) {
    if (auto endpoint = Endpoint::parse(wanted); !endpoint.ok()) return endpoint.status();
    for (const SessionInfo& session : sessions) {
      if (session.address == wanted) return address_of(session);
    }
    for (const SessionInfo& session : sessions) {
      if (session.head_address == wanted) return address_of(session);
    }
    auto token = token_from_environment();
    if (!token.ok()) return token.status();
    if (token->empty()) {
      return not_found(
          "no node of this user listens at " + wanted +
          " on this machine; to reach one elsewhere, set STARLING_TOKEN or STARLING_TOKEN_FILE");
    }
    ClusterAddress address;
    address.address = wanted;
    address.token = *token;
    return address;
  }
  if (sessions.empty()) return no_cluster("no cluster of this user runs on this machine");
  if (auto last = read_file(session_root() / "last", kSmallFileBytesMax); last.ok()) {
    for (const SessionInfo& session : sessions) {
      if (session.dir.string() == trimmed_token(*last)) return address_of(session);
    }
  }
  bool one_cluster = std::all_of(sessions.begin(), sessions.end(), [&](const SessionInfo& session) {
    return session.cluster == sessions[0].cluster;
  });
  if (one_cluster && fallback == Fallback::kOnlyCluster) return address_of(sessions[0]);
  std::string addresses;
  for (const SessionInfo& session : sessions) addresses += " " + session.address;
  return not_found("the cluster that was started last has ended; on this machine there " +
                   std::string(sessions.size() > 1 ? "are" : "is") + addresses +
                   ": name one with --address or STARLING_ADDRESS");
}

bool is_running(const SessionInfo& info) {
  if (info.pid <= 0) return false;
  std::uint64_t start = process_start_time(info.pid);
  return start != 0 && start == info.pid_start;
}

std::uint64_t process_start_time(std::int32_t pid) {
  auto content = read_file("/proc/" + std::to_string(pid) + "/stat", kSmallFileBytesMax);
  if (!content.ok()) return 0;
  // "pid (name) state ppid ...": the name may hold anything, so count from the last ')'. The start
  // time is field 22.
  std::size_t at = content->rfind(')');
  if (at == std::string::npos || at + 2 >= content->size()) return 0;
  if ((*content)[at + 2] == 'Z') return 0;  // a zombie runs no more
  const char* field = content->c_str() + at + 2;
  for (int i = 3; i < 22; ++i) {
    field = std::strchr(field, ' ');
    if (!field) return 0;
    ++field;
  }
  return std::strtoull(field, nullptr, 10);
}

}  // namespace runtime
