#include "runtime/process/session.h"

#include <sys/stat.h>
#include <sys/syscall.h>
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
#include "runtime/process/file_lock.h"
#include "runtime/process/file_util.h"
#include "runtime/process/node_address.h"
#include "runtime/process/private_folder.h"
#include "runtime/transport/endpoint.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kSmallFileBytesMax = 64 << 10;
constexpr std::chrono::seconds kStopPatienceMax = std::chrono::minutes(10);
std::string environment(const char* name) {
  const char* value = environment_variable(name);
  return value ? value : "";
}

std::string trimmed_token(std::string text) {
  constexpr const char* kBlanks = " \t\r\n";
  text.erase(text.find_last_not_of(kBlanks) + 1);
  return text.erase(0, text.find_first_not_of(kBlanks));
}

/// Eight hex digits, as cluster and node folders are named.
bool is_short_id(const std::string& name) {
  return name.size() == 8 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// What is in `folder` with an id for its name.
std::vector<fs::path> id_named(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (is_short_id(at->path().filename().string())) found.push_back(at->path());
  }
  return found;
}

/// The private folders among it.
std::vector<fs::path> id_folders(const fs::path& folder) {
  std::vector<fs::path> found = id_named(folder);
  std::erase_if(found, [](const fs::path& path) { return !check_private_folder(path).ok(); });
  return found;
}

/// Whether the folder was made as a root by this user's Starling. Until the nodes in it have put
/// back a mark that was removed, they prove it. One that was opened to others since stays a root,
/// which its users refuse.
bool is_own_root(const fs::path& folder) {
  struct stat info {};
  const bool is_own =
      ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
  if (!is_own) return false;
  if (read_private_file(folder / kRootMark, kSmallFileBytesMax).ok()) return true;
  const auto folders = node_folders(folder);
  return folders.ok() && std::any_of(folders->begin(), folders->end(), [](const fs::path& node) {
           return is_locked(node / kNodeLock);
         });
}

/// Of the folders whose names are ids the first that is not looked into, with why not.
Status refused_folder(const fs::path& root) {
  for (const fs::path& folder : id_named(root)) {
    if (Status status = check_private_folder(folder); !status.ok()) return status;
  }
  return {};
}

Status no_cluster(const std::string& detail) {
  return not_found(detail +
                   "; start one with `starling start --head`, or name one with --address HOST:PORT "
                   "or STARLING_ADDRESS");
}

}  // namespace

fs::path session_root() {
  const std::string own = "starling-" + std::to_string(::geteuid());
  if (const std::string given = environment("STARLING_SESSION_ROOT"); !given.empty()) {
    std::error_code error;  // sockets are looked for from other working directories, too
    const fs::path whole = fs::absolute(given, error);
    const std::string named = error ? given : whole.string();
    struct stat info {};
    const bool is_there = ::lstat(named.c_str(), &info) == 0;
    return !is_there || is_own_root(named) ? fs::path(named) : fs::path(named) / own;
  }
  std::string base = environment("XDG_RUNTIME_DIR");
  if (base.empty() || ::access(base.c_str(), W_OK | X_OK) != 0) base = "/tmp";
  return fs::path(base) / own;
}

std::optional<SessionInfo> read_session(const fs::path& dir) {
  auto content = read_private_file(dir / "node.json", kSmallFileBytesMax);
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
  info.bound = text("bound");
  info.head_address = text("head_address");
  info.is_head = json.contains("is_head") && json["is_head"] == true;
  info.stop_patience = std::chrono::seconds(
      std::clamp<std::int64_t>(number("stop_patience_s"), 0, kStopPatienceMax.count()));
  info.host = text("host");
  info.pid_scope = text("pid_scope");
  info.dir = dir;
  return info;
}

Result<std::vector<fs::path>> node_folders(const fs::path& root) {
  std::vector<fs::path> found;
  const Status trusted = check_private_folder(root);
  if (trusted.code() == ErrorCode::kNotFound) return found;
  if (!trusted.ok()) return trusted.with_context("the folder of sessions");
  for (const fs::path& cluster : id_folders(root)) {
    for (fs::path& node : id_folders(cluster)) found.push_back(std::move(node));
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<std::vector<SessionInfo>> find_sessions(const fs::path& root) {
  auto folders = node_folders(root);
  if (!folders.ok()) return folders.status();
  std::vector<SessionInfo> sessions;
  for (const fs::path& folder : *folders) {
    auto info = read_session(folder);
    if (info && is_running(*info)) sessions.push_back(std::move(*info));
  }
  return sessions;
}

std::vector<SessionInfo> running_sessions(const fs::path& root) {
  auto sessions = find_sessions(root);
  if (sessions.ok()) return *std::move(sessions);
  LOG(warn, "{}", sessions.status().message());
  return {};
}

std::string last_session(const fs::path& root) {
  const auto last = read_private_file(root / "last", kSmallFileBytesMax);
  return last.ok() ? trimmed_token(*last) : "";
}

namespace {

/// A pipe without a writer would keep every command waiting; a token that others can read is
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

Result<std::string> read_token_file(const std::string& file) {
  if (Status status = check_token_file(file); !status.ok()) return status;
  auto content = read_file(file, kSmallFileBytesMax);
  if (!content.ok()) return content.status();
  std::string token = trimmed_token(*content);
  // A user who names a file means to have a token, and is not to get a cluster with another one.
  if (token.empty()) return invalid_argument(file + " is empty; put the cluster's token there");
  return token;
}

std::vector<std::string> token_variables(const fs::path& file) {
  return {"STARLING_TOKEN=", "STARLING_TOKEN_FILE=" + file.string()};
}

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
  auto token = read_token_file(file);
  return token.ok() ? token : token.status().with_context("STARLING_TOKEN_FILE");
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
    auto content = read_private_file(session.dir.parent_path() / "token", kSmallFileBytesMax);
    if (content.status().code() == ErrorCode::kNotFound)
      return not_found("the cluster's token is not in its file (" + content.status().message() +
                       "): a living node puts it back within 30 s; try again then, or set "
                       "STARLING_TOKEN");
    if (!content.ok()) return content.status().with_context("the cluster's token");
    address.token = trimmed_token(*content);
  }
  return address;
}

Result<ClusterAddress> find_cluster(const std::string& explicit_address, Fallback fallback) {
  std::string wanted =
      explicit_address.empty() ? environment("STARLING_ADDRESS") : explicit_address;
  if (wanted == "auto") wanted.clear();
  auto found = find_sessions();
  if (!found.ok()) return found.status();
  const std::vector<SessionInfo> sessions = *std::move(found);
  if (!wanted.empty()) {
    if (auto endpoint = Endpoint::parse(wanted); !endpoint.ok()) return endpoint.status();
    if (const SessionInfo* session = session_at(sessions, wanted)) return address_of(*session);
    for (const SessionInfo& session : sessions) {
      if (session.head_address == wanted) return address_of(session);
    }
    if (wanted.starts_with("localhost:")) wanted.replace(0, 9, "127.0.0.1");
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
  if (sessions.empty()) {
    const Status refused = refused_folder(session_root());
    return no_cluster("no cluster of this user runs on this machine" +
                      (refused.ok() ? "" : ", as far as can be seen: " + refused.message()));
  }
  if (const std::string last = last_session(); !last.empty()) {
    for (const SessionInfo& session : sessions) {
      if (session.dir.string() == last) return address_of(session);
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

bool is_running(const SessionInfo& info) { return is_locked(info.dir / kNodeLock); }

std::string pid_scope() {
  const auto boot = read_file("/proc/sys/kernel/random/boot_id", kSmallFileBytesMax);
  std::error_code error;
  const fs::path scope = fs::read_symlink("/proc/self/ns/pid", error);
  return (boot.ok() ? trimmed_token(*boot) : "") + " " + scope.string();
}

Status kill_node(const SessionInfo& info) {
  if (info.pid_scope != pid_scope()) {
    return invalid_argument("node " + info.address + " runs on " + info.host +
                            " in another PID namespace or on another machine: stop it there");
  }
  FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, info.pid, 0)));
  const std::uint64_t start = process_start_time(info.pid);
  if (info.pid <= 0 || start == 0 || start != info.pid_start)
    return not_found("node " + info.address + " has ended");
  const long ended = process ? ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0)
                             : ::kill(info.pid, SIGKILL);
  return ended == 0 ? Status() : errno_status(errno, "killing node " + info.address);
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
