// Consumers of a process's output, besides its log (LogFile): whole lines for the driver, the end
// of it for error messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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
