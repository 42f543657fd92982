// Locks on files and folders (flock) that say whether the process that made them lives. The kernel
// releases them with the process, in whichever PID namespace or on whichever machine it ran.
#pragma once

#include <filesystem>

#include "runtime/core/result.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

/// A lock that is held as long as this object. Not inherited by programs that are executed; a
/// forked child that executes nothing holds it, too.
class FileLock {
 public:
  FileLock() = default;

  /// Makes the file (0600) if it is not there, and locks it; waits for those that only look at it.
  /// Errors: kInvalidArgument (a link; a file system without locks), what opening can say.
  static Result<FileLock> of_file(const std::filesystem::path& file);
  /// The same at once or not at all. Errors: also kUnavailable (another process holds it).
  static Result<FileLock> try_file(const std::filesystem::path& file);
  /// That of a process that has ended: of this user's file, which is not made. Errors: kNotFound,
  /// kInvalidArgument (a link, no file, another user's), kUnavailable (a process holds it).
  static Result<FileLock> of_dead(const std::filesystem::path& file);
  /// Several may hold it, of a file that is there; meanwhile no process takes it for a dead one's.
  /// Errors: kNotFound, kInvalidArgument (a link), kUnavailable (a process holds it alone).
  static Result<FileLock> shared(const std::filesystem::path& file);
  /// A shared lock of a folder, by which systemd-tmpfiles leaves it and what is in it alone.
  static Result<FileLock> of_folder(const std::filesystem::path& folder);

  bool is_held() const { return static_cast<bool>(fd_); }
  /// Whether `file` still names what is locked: it may have been removed, and even made again.
  bool is_of(const std::filesystem::path& file) const;

 private:
  explicit FileLock(FileDescriptor fd) : fd_(std::move(fd)) {}

  FileDescriptor fd_;
};

/// Locks an open file alone for as long as it is open, at once or not at all. Errors: kUnavailable
/// (a process holds it), kInvalidArgument (a file system without locks).
Status lock_open_file(int fd, const std::filesystem::path& file);

/// Whether a process holds it alone: FileLock::of_file, lock_open_file(). False where there is no
/// such file.
bool is_locked(const std::filesystem::path& file);

}  // namespace runtime
