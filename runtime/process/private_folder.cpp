#include "runtime/process/private_folder.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "runtime/core/environment.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr mode_t kOthersMay = 0077;
constexpr mode_t kOthersMayWrite = 0022;

std::string octal(mode_t mode) {
  std::string text;
  for (int shift = 6; shift >= 0; shift -= 3)
    text += static_cast<char>('0' + ((mode >> shift) & 7));
  return text;
}

Status check_folder(const fs::path& folder, mode_t forbidden, const char* mode_wanted) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return errno_status(errno, folder.string());
  if (S_ISLNK(info.st_mode)) return invalid_argument(folder.string() + " is a link, not a folder");
  if (!S_ISDIR(info.st_mode))
    return invalid_argument(folder.string() + " is in the way: it is not a folder");
  if (info.st_uid != ::geteuid()) {
    return invalid_argument(folder.string() + " belongs to user " + std::to_string(info.st_uid) +
                            ", who may have put anything there: it is not used");
  }
  if ((info.st_mode & forbidden) != 0) {
    return invalid_argument(folder.string() + " is open to other users (mode " +
                            octal(info.st_mode & 0777) + "): chmod " + mode_wanted +
                            " it, or name a folder that is not there yet");
  }
  return {};
}

}  // namespace

Status make_private_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return errno_status(errno, "making folder " + folder.string());
  return check_private_folder(folder);
}

Status check_private_folder(const fs::path& folder) {
  return check_folder(folder, kOthersMay, "700");
}

Status check_unshared_folder(const fs::path& folder) {
  return check_folder(folder, kOthersMayWrite, "755");
}

Result<std::string> read_private_file(const fs::path& file, std::size_t bytes_max) {
  // Not blocking, should it be a pipe.
  FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && errno == ELOOP) return invalid_argument(file.string() + " is a link, not a file");
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return errno_status(errno, file.string());
  if (!S_ISREG(info.st_mode)) return invalid_argument(file.string() + " is not a file");
  if (info.st_uid != ::geteuid() || (info.st_mode & kOthersMayWrite) != 0) {
    return invalid_argument(file.string() +
                            " belongs to another user, or can be changed by others: not used");
  }
  std::string content;
  std::vector<char> block(16384);
  while (true) {
    const ssize_t got = ::read(fd.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status(errno, file.string());
    if (got == 0) return content;
    content.append(block.data(), static_cast<std::size_t>(got));
    if (content.size() > bytes_max) {
      return invalid_argument(file.string() + " is larger than " + std::to_string(bytes_max) +
                              " bytes");
    }
  }
}

Result<fs::path> home_folder(const char* instead) {
  if (const char* home = environment_variable("HOME"); home && *home) return fs::path(home);
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  if (found && found->pw_dir && *found->pw_dir == '/') return fs::path(found->pw_dir);
  return not_found("HOME is not set and user " + std::to_string(::geteuid()) +
                   " has no home: set " + instead + " to a folder of this user");
}

}  // namespace runtime
