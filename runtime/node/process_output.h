// What becomes of a process's output: whole lines for the driver, all bytes for the log file, the
// end of it for error messages.
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

/// Appends to a file; at `bytes_max` the file becomes "<name>.1" and a new one begins, so that a
/// log takes at most twice that. What cannot be written is dropped, with a warning and later a line
/// that says how much: a full disk must not stop the work that is logged.
class LogFile {
 public:
  static constexpr std::uint64_t kBytesMax = 64ull << 20;

  explicit LogFile(std::filesystem::path file, std::uint64_t bytes_max = kBytesMax);
  void append(std::string_view bytes);
  const std::filesystem::path& path() const { return path_; }
  std::uint64_t lost_bytes() const { return lost_; }  // since it could last be written to

 private:
  Status reopen();
  Status write(std::string_view bytes);

  std::filesystem::path path_;
  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  std::uint64_t lost_ = 0;
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
