#include "rl/watch/log_file.h"

#include <cerrno>

namespace rl {

runtime::Result<LogFile> LogFile::create(const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) return runtime::errno_status(error.value(), "making the folder of " + path.string());
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return runtime::errno_status(errno, "writing " + path.string());
  return LogFile(path, file);
}

runtime::Status LogFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size() || std::fflush(file_.get()) != 0) {
    return runtime::errno_status(errno, "writing " + path_.string());
  }
  return {};
}

}  // namespace rl
