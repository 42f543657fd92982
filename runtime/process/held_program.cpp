#include "runtime/process/held_program.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <utility>

namespace runtime {

HeldProgram::HeldProgram(std::string path) : path_(std::move(path)) {
  static constexpr const char* kOwnProgram = "/proc/self/exe";
  std::error_code error;
  const bool is_own = std::filesystem::read_symlink(kOwnProgram, error) == path_ && !error;
  file_.reset(::open(is_own ? kOwnProgram : path_.c_str(), O_PATH | O_CLOEXEC));
}

std::string HeldProgram::to_execute() const {
  struct stat held, there;
  if (!file_ || ::fstat(file_.get(), &held) != 0) return path_;
  const bool is_same = ::stat(path_.c_str(), &there) == 0 && there.st_dev == held.st_dev &&
                       there.st_ino == held.st_ino;
  return is_same ? path_ : "/proc/self/fd/" + std::to_string(file_.get());
}

}  // namespace runtime
