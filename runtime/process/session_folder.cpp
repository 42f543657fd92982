#include "runtime/process/session_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/core/disk_space.h"
#include "runtime/core/environment.h"
#include "runtime/core/log.h"
#include "runtime/process/file_util.h"
#include "runtime/process/private_folder.h"
#include "runtime/process/spill_place.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

// Folders of ended nodes keep their logs this long. At most kEndedNodesMax nodes do, with
// kEndedNodesBytesMax in all, or a quarter of what the disk has for them if that is less.
constexpr auto kLogsKept = std::chrono::hours(24 * 7);
constexpr std::uint64_t kEndedNodesBytesMax = 2ull << 30;
constexpr std::size_t kEndedNodesMax = 200;
constexpr std::uint64_t kEndedDiskParts = 4;
constexpr const char* kLocalRoot = "-local-";  // and the program's pid
// Each time the name was taken, or another program took the new root for left behind.
constexpr int kLocalRootTries = 100;
constexpr std::size_t kMarkBytesMax = 4096;
constexpr int kNodeFolderDepth = 2;  // node.json, logs/node.log
// The longest socket name in a session: "w-" and 16 digits of a worker's id and ".sock".
constexpr std::size_t kSocketNameBytesMax = 24;

void remove_run_files(const fs::path& dir) {
  std::error_code error;
  fs::remove(dir / "node.json", error);
  // That of a head goes with its node, unless it was given a folder.
  fs::remove_all(dir / "journal", error);
  remove_dead_spills(dir);
  for (fs::directory_iterator file(dir, error), end; !error && file != end; file.increment(error)) {
    std::error_code ignored;
    if (file->path().extension() == ".sock") fs::remove(file->path(), ignored);
  }
}

/// Whether a node runs below a root: its program may have been killed just now.
bool has_living_node(const fs::path& root) {
  std::error_code error;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    std::error_code none;
    for (fs::directory_iterator node(at->path(), none), last; !none && node != last;
         node.increment(none)) {
      if (is_locked(node->path() / kNodeLock)) return true;
    }
  }
  return false;
}

/// The folder of a node that has ended, with its logs.
struct EndedNode {
  fs::path dir;
  std::uint64_t bytes = 0;
  std::int64_t written_ns = 0;  // the last line of its logs
};

/// Logs of processes that had written nothing when the node was killed go on the way.
EndedNode look_at_ended(const fs::path& dir) {
  EndedNode ended{dir};
  for (const FolderFile& file : files_in(dir, kNodeFolderDepth)) {
    std::error_code ignored;
    if (file.bytes == 0 && file.path.extension() == ".log") fs::remove(file.path, ignored);
    ended.bytes += file.bytes;
    ended.written_ns = std::max(ended.written_ns, file.written_ns);
  }
  return ended;
}

void remove_node_folder(const fs::path& dir) {
  std::error_code error;
  fs::remove_all(dir, error);
  fs::remove(dir.parent_path(), error);  // succeeds only when it is empty
}

/// Those that ended longest ago go until the rest is within the common limits.
void trim_ended(std::vector<EndedNode> ended, const fs::path& root) {
  std::sort(ended.begin(), ended.end(),
            [](const EndedNode& a, const EndedNode& b) { return a.written_ns < b.written_ns; });
  std::uint64_t bytes = 0;
  for (const EndedNode& node : ended) bytes += node.bytes;
  const auto disk = disk_space(root);
  const std::uint64_t bytes_max =
      disk.ok() ? std::min(kEndedNodesBytesMax, share_of(*disk, bytes, kEndedDiskParts))
                : kEndedNodesBytesMax;
  std::size_t left = ended.size();
  for (const EndedNode& node : ended) {
    if (left <= kEndedNodesMax && bytes <= bytes_max) return;
    const auto dead = FileLock::of_dead(node.dir / kNodeLock);
    if (!dead.ok()) continue;
    remove_node_folder(node.dir);
    bytes -= node.bytes;
    --left;
  }
}

/// After the end of the node in `dir`. Its cluster's token goes with the last of its nodes, and
/// `last` goes on to another of them.
void forget(const fs::path& dir, const std::vector<SessionInfo>& running) {
  const fs::path cluster_dir = dir.parent_path();
  const fs::path root = cluster_dir.parent_path();
  std::optional<fs::path> sibling;
  for (const SessionInfo& other : running) {
    if (other.dir.parent_path() == cluster_dir && other.dir != dir) sibling = other.dir;
  }
  // A node that is starting has its lock, and not its node.json yet.
  const auto folders = node_folders(root);
  const bool is_needed =
      !folders.ok() || std::any_of(folders->begin(), folders->end(), [&](const fs::path& other) {
        return other.parent_path() == cluster_dir && other != dir && is_locked(other / kNodeLock);
      });
  std::error_code error;
  if (!is_needed) fs::remove(cluster_dir / "token", error);
  if (last_session(root) != dir.string()) return;
  if (sibling) {
    // What was started last is gone; its cluster is still the one that commands mean.
    const Status status = write_file_atomic(root / "last", sibling->string() + "\n", 0600);
    if (status.ok()) return;
  }
  fs::remove(root / "last", error);
}

/// Sets the file's times to now, without following a link.
void touch(const fs::path& file) {
  ::utimensat(AT_FDCWD, file.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

bool is_missing(const fs::path& file) {
  return ::access(file.c_str(), F_OK) != 0 && errno == ENOENT;
}

/// A folder that STARLING_SESSION_ROOT names may have to be made, with ours in it.
Status make_root_and_parent(const fs::path& root) {
  if (const fs::path parent = root.parent_path(); !parent.empty() && is_missing(parent))
    ::mkdir(parent.c_str(), 0700);
  return make_session_root(root).with_context("the folder of sessions");
}

std::string node_file_text(const SessionInfo& info) {
  const nlohmann::json json{{"cluster", info.cluster.hex()},
                            {"node", info.node.hex()},
                            {"pid", info.pid},
                            {"pid_start", info.pid_start},
                            {"pid_scope", info.pid_scope},
                            {"host", info.host},
                            {"address", info.address},
                            {"bound", info.bound},
                            {"head_address", info.head_address},
                            {"is_head", info.is_head},
                            {"stop_patience_s", info.stop_patience.count()}};
  return json.dump(2) + "\n";
}

}  // namespace

Status make_session_root(const fs::path& root) {
  const std::string mark = "sessions of user " + std::to_string(::geteuid()) + "\n";
  if (is_missing(root)) {
    // At once with its mark: a root without one would be taken for a folder to make ours in.
    fs::path made = root;
    made += ".new-" + NodeId::random().short_hex();
    if (Status status = make_private_folder(made); !status.ok()) return status;
    Status status = write_file_atomic(made / kRootMark, mark, 0600);
    if (status.ok() &&
        ::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, root.c_str(), RENAME_NOREPLACE) == 0)
      return {};
    const int why = errno;  // EEXIST: another process was faster
    std::error_code ignored;
    fs::remove_all(made, ignored);
    if (!status.ok()) return status;
    if (why != EEXIST) return errno_status(why, "making folder " + root.string());
  }
  if (Status status = check_private_folder(root); !status.ok()) return status;
  return is_missing(root / kRootMark) ? write_file_atomic(root / kRootMark, mark, 0600) : Status();
}

void remove_dead_sessions(const fs::path& root) {
  auto folders = node_folders(root);
  if (!folders.ok()) return;
  const std::vector<SessionInfo> running = running_sessions(root);
  const auto now = fs::file_time_type::clock::now();
  std::vector<EndedNode> ended;
  for (const fs::path& dir : *folders) {
    // A folder without a node's lock in it is none of ours. Held, so that no process takes it for
    // living now.
    const auto dead = FileLock::of_dead(dir / kNodeLock);
    if (!dead.ok()) continue;
    std::error_code error;
    if (fs::exists(dir / "node.json", error)) {
      remove_run_files(dir);
      forget(dir, running);
      ended.push_back(look_at_ended(dir));
      continue;
    }
    remove_dead_spills(dir);  // of a node that was killed before it had its node.json
    const auto written = fs::last_write_time(dir, error);
    if (!error && now - written >= kLogsKept)
      remove_node_folder(dir);
    else
      ended.push_back(look_at_ended(dir));
  }
  trim_ended(std::move(ended), root);
}

fs::path local_root(std::int32_t program) {
  return session_root().string() + kLocalRoot + std::to_string(program);
}

Result<LocalRoot> make_local_root(std::int32_t program) {
  Status why = unavailable(local_root(program).string() + " is taken");
  for (int i = 0; i < kLocalRootTries; ++i) {
    fs::path root = local_root(program);
    if (i > 0) root += "-" + NodeId::random().short_hex();
    if (!is_missing(root)) continue;
    const Status made = make_session_root(root);
    // Not made again: until it is locked, other programs may take it for left behind.
    auto lock = made.ok() ? FileLock::of_dead(root / kRootMark) : Result<FileLock>(made);
    if (lock.ok() && lock->is_of(root / kRootMark)) return LocalRoot{root, *std::move(lock)};
    if (lock.ok()) continue;
    why = lock.status();
    if (why.code() != ErrorCode::kNotFound && why.code() != ErrorCode::kUnavailable) return why;
  }
  return why;
}

void remove_dead_local_roots() {
  const fs::path root = session_root();
  const std::string prefix = root.filename().string() + kLocalRoot;
  std::error_code error;
  for (fs::directory_iterator at(root.parent_path(), error), end; !error && at != end;
       at.increment(error)) {
    const fs::path& found = at->path();
    if (!found.filename().string().starts_with(prefix) || !check_private_folder(found).ok() ||
        !read_private_file(found / kRootMark, kMarkBytesMax).ok())
      continue;
    const auto dead = FileLock::of_dead(found / kRootMark);
    std::error_code ignored;
    if (dead.ok() && !has_living_node(found)) fs::remove_all(found, ignored);
  }
}

SessionFolder::SessionFolder(fs::path path, std::string token)
    : path_(std::move(path)), token_(std::move(token)) {}

Result<SessionFolder> SessionFolder::create(ClusterId cluster, NodeId node, std::string token,
                                            const fs::path& root) {
  SessionFolder folder(root / cluster.short_hex() / node.short_hex(), std::move(token));
  if (folder.path_.string().size() + 1 + kSocketNameBytesMax >= sizeof(sockaddr_un::sun_path)) {
    return invalid_argument("the session folder " + folder.path_.string() +
                            " is too long for Unix sockets; point " +
                            (environment_variable("STARLING_SESSION_ROOT") ? "STARLING_SESSION_ROOT"
                                                                           : "XDG_RUNTIME_DIR") +
                            " to a folder with a shorter name");
  }
  if (Status status = make_root_and_parent(root); !status.ok()) return status;
  if (Status status = folder.lock(); !status.ok()) return status;
  remove_dead_sessions(root);
  remove_dead_local_roots();
  return folder;
}

Status SessionFolder::lock() {
  for (const fs::path& made : {path_.parent_path(), path_, path_ / "logs"}) {
    if (Status status = make_private_folder(made); !status.ok()) return status;
  }
  if (!lock_.is_of(path_ / kNodeLock)) {  // else this very process would wait for itself
    auto held = FileLock::of_file(path_ / kNodeLock);
    if (!held.ok()) return held.status();
    lock_ = *std::move(held);
  }
  lock_root();
  return write_file_atomic(path_.parent_path() / "token", token_, 0600);
}

void SessionFolder::lock_root() {
  if (auto held = FileLock::of_folder(root()); held.ok()) root_lock_ = *std::move(held);
}

Status SessionFolder::use_token(std::string token) {
  token_ = std::move(token);  // refresh() writes it if this does not
  return write_file_atomic(path_.parent_path() / "token", token_, 0600);
}

Status SessionFolder::write_node_file() const {
  return write_file_atomic(path_ / "node.json", node_file_text(*published_), 0600);
}

Status SessionFolder::publish(SessionInfo info, bool as_last) {
  info.dir = path_;
  published_ = std::move(info);
  if (Status status = write_node_file(); !status.ok()) return status;
  if (!as_last) return {};
  is_last_ = true;
  return write_file_atomic(root() / "last", path_.string() + "\n", 0600);
}

Status SessionFolder::refresh() {
  if (!root_lock_.is_of(root())) lock_root();
  if (!lock_.is_of(path_ / kNodeLock) || is_missing(path_.parent_path() / "token") ||
      is_missing(root() / kRootMark)) {
    LOG(warn, "files of this node in {} were removed: putting them back", path_.string());
    if (Status status = make_root_and_parent(root()); !status.ok()) return status;
    if (Status status = lock(); !status.ok()) return status;
  }
  // Another node may have put an older one there; or a full disk kept the new one out.
  const fs::path token_file = path_.parent_path() / "token";
  if (auto kept = read_private_file(token_file, kMarkBytesMax); !kept.ok() || *kept != token_) {
    if (Status status = write_file_atomic(token_file, token_, 0600); !status.ok()) return status;
  }
  if (published_) {
    const auto kept = read_private_file(path_ / "node.json", kMarkBytesMax);
    if (!kept.ok() || *kept != node_file_text(*published_)) {
      if (Status status = write_node_file(); !status.ok()) return status;
    }
  }
  const fs::path last = root() / "last";
  if (is_last_ && is_missing(last)) {
    if (Status status = write_file_atomic(last, path_.string() + "\n", 0600); !status.ok())
      return status;
  }
  std::error_code error;
  for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error))
    touch(at->path());
  for (const fs::path& file : {path_.parent_path() / "token", last, root() / kRootMark})
    touch(file);
  return {};
}

void remove_session(const fs::path& dir) {
  if (is_missing(dir / kNodeLock)) return;
  remove_run_files(dir);
  forget(dir, running_sessions(dir.parent_path().parent_path()));
}

}  // namespace runtime
