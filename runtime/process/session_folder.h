// SessionFolder: the files of a node on disk while it runs (the layout: session.h).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/core/ids.h"
#include "runtime/core/result.h"
#include "runtime/process/file_lock.h"
#include "runtime/process/session.h"

namespace runtime {

/// A node's folder, locked for as long as this object. The lock tells others that the node lives,
/// and cleaners of temporary folders leave it alone. Not thread-safe.
class SessionFolder {
 public:
  /// Makes `<root>/<cluster>/<node>/logs`, all 0700, and the token's file. What dead nodes of this
  /// user left is removed on the way: run files at once, logs after a week. The root stays the same
  /// for this object, whatever becomes of its mark.
  /// Errors: kInvalidArgument (a folder there is another user's, open to others, or a link; socket
  /// paths below it would be too long; no locks there).
  static Result<SessionFolder> create(ClusterId cluster, NodeId node, std::string token,
                                      const std::filesystem::path& root = session_root());

  const std::filesystem::path& path() const { return path_; }

  /// Writes node.json in it; `as_last` also points `last` there. Both atomically.
  Status publish(SessionInfo info, bool as_last);

  /// The cluster has another one: its file says so from now on.
  Status use_token(std::string token);

  /// Keeps the files young, and restores those that were removed or changed: the root with its
  /// mark, lock, token, node.json and `last`. Sockets cannot be restored.
  Status refresh();

 private:
  SessionFolder(std::filesystem::path path, std::string token);
  std::filesystem::path root() const { return path_.parent_path().parent_path(); }
  Status lock();
  void lock_root();
  Status write_node_file() const;

  std::filesystem::path path_;
  std::string token_;
  std::optional<SessionInfo> published_;
  bool is_last_ = false;
  FileLock lock_;
  FileLock root_lock_;  // against systemd-tmpfiles
};

/// Removes node.json and the sockets; the token and `last` too when no other node needs them. Logs
/// stay. Only of a folder that has a node's lock in it.
void remove_session(const std::filesystem::path& dir);

/// Removes what dead nodes of this user left: run files and spilled objects at once, their folders
/// with the logs after a week. Folders go earlier, those that ended longest ago first, if they are
/// more than 200. So they do if they have more than 2 GiB (or a quarter of what the disk has).
void remove_dead_sessions(const std::filesystem::path& root = session_root());

/// The root of the cluster that a program has for itself, if no other has that name.
std::filesystem::path local_root(std::int32_t program);

/// Such a root; no other program takes it for left behind while the lock is held.
struct LocalRoot {
  std::filesystem::path path;
  FileLock lock;
};

/// Makes one, at once: under another name where that of local_root() is taken, by a program of the
/// same pid in another PID namespace. Errors: as make_session_root().
Result<LocalRoot> make_local_root(std::int32_t program);

/// Removes the roots of programs that were killed before they could. Such a root has a root's mark,
/// its lock is held by no process, and no node lives in it.
void remove_dead_local_roots();

/// Makes a root of sessions by itself, as one that STARLING_SESSION_ROOT may name. Errors: as
/// make_private_folder().
Status make_session_root(const std::filesystem::path& root);

}  // namespace runtime
