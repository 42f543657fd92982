#include "rl/watch/log_file.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace rl {

runtime::Result<LogFile> LogFile::create(const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) return runtime::errno_status(error.value(), "making the folder of " + path.string());
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return runtime::errno_status(errno, "writing " + path.string());
  std::setvbuf(file, nullptr, _IONBF, 0);  // what could not be written must not follow later
  return LogFile(path, file);
}

runtime::Status LogFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size()) {
    bytes_ += std::ssize(bytes);
    return {};
  }
  const int reason = errno;
  std::clearerr(file_.get());
  if (::ftruncate(::fileno(file_.get()), bytes_) != 0 || std::fseek(file_.get(), bytes_, SEEK_SET) != 0) {
    return runtime::errno_status(errno, "taking back what was written in part to " + path_.string());
  }
  return runtime::errno_status(reason, "writing " + path_.string());
}

runtime::Status LogFile::rename(const std::filesystem::path& path) {
  if (std::rename(path_.c_str(), path.c_str()) != 0) return runtime::errno_status(errno, "writing " + path.string());
  path_ = path;
  return {};
}

}  // namespace rl
