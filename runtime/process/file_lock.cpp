#include "runtime/process/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace runtime {

namespace fs = std::filesystem;

namespace {

/// 0, or the error number.
int lock(int fd, int operation) {
  while (::flock(fd, operation) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

Status lock_status(int error, const fs::path& what) {
  switch (error) {
    case 0: return {};
    case EWOULDBLOCK: return unavailable(what.string() + " is locked by another process");
    case ENOLCK:
    case EOPNOTSUPP:
    case ENOSYS:
      return invalid_argument(what.string() +
                              ": its file system has no locks, by which a node proves that it "
                              "lives; choose a folder on a local disk");
    default: return errno_status(error, "locking " + what.string());
  }
}

Result<FileDescriptor> open_and_lock(const fs::path& path, int flags, int operation) {
  FileDescriptor fd(::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd && errno == ELOOP) return invalid_argument(path.string() + " is a link");
  if (!fd) return errno_status(errno, path.string());
  if (const int error = lock(fd.get(), operation); error != 0) return lock_status(error, path);
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
  int error = lock(fd.get(), LOCK_EX | LOCK_NB);
  if (error == EBADF) {  // NFS locks only what is open for writing
    fd.reset(::open(file.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd && errno == ETXTBSY) return unavailable(file.string() + " is being executed");
    if (!fd) return errno_status(errno, file.string());
    error = lock(fd.get(), LOCK_EX | LOCK_NB);
  }
  if (error != 0) return lock_status(error, file);
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

Status lock_open_file(int fd, const fs::path& file) {
  return lock_status(lock(fd, LOCK_EX | LOCK_NB), file);
}

bool is_locked(const fs::path& file) {
  // Shared, so that several may look at once; not blocking, should it be a pipe.
  FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return false;
  return lock(fd.get(), LOCK_SH | LOCK_NB) == EWOULDBLOCK;
}

}  // namespace runtime
