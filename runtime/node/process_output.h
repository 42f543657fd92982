// What becomes of a process's output: whole lines for the driver, all bytes for the log file, the end of it for error messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

/// Cuts a stream of bytes into lines. A value.
class LineSplitter {
 public:
  static constexpr std::size_t kLineBytesMax = 64 << 10;  // longer lines are cut

  /// The lines that `bytes` completes, without their ends ("\n" or "\r\n").
  std::vector<std::string> feed(std::string_view bytes);
  /// The unfinished line, if any; call at the end of the stream.
  std::vector<std::string> finish();

 private:
  std::string partial_;
};

/// Appends to a file; at `bytes_max` the file becomes "<name>.1" and a new one begins, so that a log takes at most twice that.
/// Failures to write are dropped: a full disk must not stop the work that is logged.
class LogFile {
 public:
  static constexpr std::uint64_t kBytesMax = 64ull << 20;

  static Result<LogFile> open(std::filesystem::path file, std::uint64_t bytes_max = kBytesMax);
  void append(std::string_view bytes);
  const std::filesystem::path& path() const { return path_; }

 private:
  LogFile(std::filesystem::path file, std::uint64_t bytes_max) : path_(std::move(file)), bytes_max_(bytes_max) {}
  Status reopen();

  std::filesystem::path path_;
  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  FileDescriptor fd_;
};

/// The last bytes of a stream.
class Tail {
 public:
  static constexpr std::size_t kBytes = 16 << 10;

  void append(std::string_view bytes);
  /// Whole lines, the last `lines_max` of them, without a final line end.
  std::string last_lines(std::size_t lines_max) const;

 private:
  std::string bytes_;
};

}  // namespace runtime
