// A file that grows by whole writes, each of which reaches the system at once.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

#include "runtime/core/result.h"

namespace rl {

/// A resource; not thread-safe.
class LogFile {
 public:
  /// Makes the folder if need be and opens `path` empty. Errors: as errno says, with the path.
  static runtime::Result<LogFile> create(const std::filesystem::path& path);

  /// Appends and flushes, so that a killed process has lost nothing that was written.
  runtime::Status write(std::string_view bytes);

  const std::filesystem::path& path() const { return path_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  LogFile(std::filesystem::path path, std::FILE* file) : path_(std::move(path)), file_(file) {}

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace rl
