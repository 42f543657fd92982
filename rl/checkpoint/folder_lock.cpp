#include "rl/checkpoint/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace rl {

runtime::Result<FolderLock> FolderLock::acquire(const std::filesystem::path& folder,
                                                const std::string& key) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return runtime::errno_status(
        error.value(), key + " has to be a folder that can be written: making " + folder.string());
  const std::filesystem::path path = folder / ".lock";
  runtime::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file)
    return runtime::errno_status(
        errno, key + " has to be a folder that can be written: making " + path.string());
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return runtime::errno_status(errno, "locking " + path.string());
    char pid[32] = {};
    const ssize_t count = ::pread(file.get(), pid, sizeof pid - 1, 0);
    return runtime::unavailable(folder.string() + ": another run writes there" +
                                (count > 0 ? " (pid " + std::string(pid) + ")" : "") + "; set " +
                                key + " to another folder");
  }
  // For the message above. A lock without it is as good.
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(file.get(), 0) == 0 && ::pwrite(file.get(), pid.data(), pid.size(), 0) < 0)
    errno = 0;
  return FolderLock(std::move(file));
}

}  // namespace rl
