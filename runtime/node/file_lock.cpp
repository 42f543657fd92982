#include "runtime/node/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace runtime {

namespace fs = std::filesystem;

namespace {

Status lock(int fd, int operation, const fs::path& what) {
  while (::flock(fd, operation) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return unavailable(what.string() + " is locked by another process");
    if (errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS) {
      return invalid_argument(what.string() +
                              ": its file system has no locks, by which a node proves that it "
                              "lives; choose a folder on a local disk");
    }
    return errno_status(errno, "locking " + what.string());
  }
  return {};
}

Result<FileDescriptor> open_and_lock(const fs::path& path, int flags, int operation) {
  FileDescriptor fd(::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd && errno == ELOOP) return invalid_argument(path.string() + " is a link");
  if (!fd) return errno_status(errno, path.string());
  if (Status status = lock(fd.get(), operation, path); !status.ok()) return status;
  return fd;
}

}  // namespace

Result<FileLock> FileLock::of_file(const fs::path& file) {
  auto fd = open_and_lock(file, O_RDWR | O_CREAT, LOCK_EX);
  if (!fd.ok()) return fd.status();
  return FileLock(*std::move(fd));
}

Result<FileLock> FileLock::try_file(const fs::path& file) {
  auto fd = open_and_lock(file, O_RDWR | O_CREAT, LOCK_EX | LOCK_NB);
  if (!fd.ok()) return fd.status();
  return FileLock(*std::move(fd));
}

Result<FileLock> FileLock::of_folder(const fs::path& folder) {
  auto fd = open_and_lock(folder, O_RDONLY | O_DIRECTORY, LOCK_SH | LOCK_NB);
  if (!fd.ok()) return fd.status();
  return FileLock(*std::move(fd));
}

Result<FileLock> FileLock::of_dead(const fs::path& file) {
  // Not for writing, which keeps a program from being started; not blocking, should it be a pipe.
  FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!fd && errno == ELOOP) return invalid_argument(file.string() + " is a link");
  if (!fd || ::fstat(fd.get(), &info) != 0) return errno_status(errno, file.string());
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid())
    return invalid_argument(file.string() + " is not a file of this user's");
  if (Status status = lock(fd.get(), LOCK_EX | LOCK_NB, file); !status.ok()) return status;
  return FileLock(std::move(fd));
}

Result<FileLock> FileLock::shared(const fs::path& file) {
  auto fd = open_and_lock(file, O_RDONLY | O_NONBLOCK, LOCK_SH | LOCK_NB);
  if (!fd.ok()) return fd.status();
  return FileLock(*std::move(fd));
}

bool FileLock::is_of(const fs::path& file) const {
  struct stat held {};
  struct stat named {};
  return fd_ && ::fstat(fd_.get(), &held) == 0 && ::lstat(file.c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

bool lock_open_file(int fd) { return lock(fd, LOCK_EX | LOCK_NB, "a file").ok(); }

bool is_locked(const fs::path& file) {
  // Shared, so that several may look at once; not blocking, should it be a pipe.
  FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return false;
  while (::flock(fd.get(), LOCK_SH | LOCK_NB) != 0) {
    if (errno != EINTR) return errno == EWOULDBLOCK;
  }
  return false;
}

}  // namespace runtime
