// A file that grows by whole writes: each reaches the system at once, or leaves nothing behind.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

#include "runtime/core/result.h"

namespace rl {

/// Makes the folder that `file` lies in, if need be. Errors: as errno says, with the file.
runtime::Status make_folder_of(const std::filesystem::path& file);

/// A resource; not thread-safe.
class LogFile {
 public:
  /// Makes the folder if need be and opens `path` empty. Errors: as errno says, with the path.
  static runtime::Result<LogFile> create(const std::filesystem::path& path);

  /// The same, going on behind what is there already.
  static runtime::Result<LogFile> open(const std::filesystem::path& path);

  /// Appends, so that a killed process has lost nothing that was written. Where not all of it can
  /// be written (a full disk) the file is as it was before, and a later call may succeed. Errors:
  /// as errno says, with the path.
  runtime::Status write(std::string_view bytes);

  const std::filesystem::path& path() const { return path_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  LogFile(std::filesystem::path path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  static runtime::Result<LogFile> open(const std::filesystem::path& path, const char* mode);

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;  // unbuffered
  std::int64_t bytes_ = 0;                  // what is in it, whole
};

}  // namespace rl
