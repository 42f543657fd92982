#include "rl/metrics/log_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rl {

runtime::Status make_folder_of(const std::filesystem::path& file) {
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  return error ? runtime::errno_status(error.value(), "making the folder of " + file.string())
               : runtime::Status();
}

runtime::Result<LogFile> LogFile::open(const std::filesystem::path& path, const char* mode) {
  if (runtime::Status made = make_folder_of(path); !made.ok()) return made;
  LogFile log(path, std::fopen(path.c_str(), mode));
  if (log.file_ == nullptr) return runtime::errno_status(errno, "writing " + path.string());
  std::setvbuf(log.file_.get(), nullptr, _IONBF,
               0);  // what could not be written must not follow later
  if (std::fseek(log.file_.get(), 0, SEEK_END) == 0)
    log.bytes_ = std::max(0L, std::ftell(log.file_.get()));
  return log;
}

runtime::Result<LogFile> LogFile::create(const std::filesystem::path& path) {
  return open(path, "wb");
}
runtime::Result<LogFile> LogFile::open(const std::filesystem::path& path) {
  return open(path, "ab");
}

runtime::Status LogFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size()) {
    bytes_ += std::ssize(bytes);
    return {};
  }
  const int reason = errno;
  std::clearerr(file_.get());
  if (::ftruncate(::fileno(file_.get()), bytes_) != 0 ||
      std::fseek(file_.get(), bytes_, SEEK_SET) != 0) {
    return runtime::errno_status(errno,
                                 "taking back what was written in part to " + path_.string());
  }
  return runtime::errno_status(reason, "writing " + path_.string());
}

}  // namespace rl
