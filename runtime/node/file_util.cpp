#include "runtime/node/file_util.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/core/ids.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace fs = std::filesystem;

Result<std::string> read_file(const fs::path& file, std::size_t bytes_max) {
  FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_status(errno, file.string());
  std::string content;
  char block[16384];
  while (true) {
    ssize_t got = ::read(fd.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status(errno, file.string());
    if (got == 0) return content;
    content.append(block, static_cast<std::size_t>(got));
    if (content.size() > bytes_max) {
      return invalid_argument(file.string() + " is larger than " + std::to_string(bytes_max) + " bytes");
    }
  }
}

Status write_file_atomic(const fs::path& file, std::string_view content, unsigned mode) {
  fs::path temporary = file;
  temporary += "." + JobId::random().short_hex() + ".tmp";
  FileDescriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd) return errno_status(errno, "writing " + temporary.string());
  while (!content.empty()) {
    ssize_t put = ::write(fd.get(), content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      Status status = errno_status(put < 0 ? errno : ENOSPC, "writing " + temporary.string());
      ::unlink(temporary.c_str());
      return status;
    }
    content.remove_prefix(static_cast<std::size_t>(put));
  }
  fd.reset();
  if (::rename(temporary.c_str(), file.c_str()) != 0) {
    Status status = errno_status(errno, "replacing " + file.string());
    ::unlink(temporary.c_str());
    return status;
  }
  return {};
}

Status make_private_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return errno_status(errno, "making folder " + folder.string());
  struct stat info;
  if (::lstat(folder.c_str(), &info) != 0) return errno_status(errno, folder.string());
  if (!S_ISDIR(info.st_mode)) return invalid_argument(folder.string() + " is in the way: it is not a folder");
  if (info.st_uid != ::geteuid()) {
    return invalid_argument(folder.string() + " belongs to user " + std::to_string(info.st_uid) +
                            "; remove it, or point XDG_RUNTIME_DIR to a folder of your own");
  }
  if ((info.st_mode & 0077) != 0 && ::chmod(folder.c_str(), 0700) != 0) return errno_status(errno, "closing " + folder.string());
  return {};
}

}  // namespace runtime
