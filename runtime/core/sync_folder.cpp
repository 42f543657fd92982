#include "runtime/core/sync_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace runtime {

std::error_code sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return {errno, std::generic_category()};
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  const bool cannot = error == EINVAL || error == ENOTSUP;
  return {cannot ? 0 : error, std::generic_category()};
}

}  // namespace runtime
