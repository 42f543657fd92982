// LineMerger: a driver's output of the lines of many workers. A prefix tells whose line it is, and
// the same line of many is shown once.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/process/log_lines.h"

namespace runtime {

/// What a LineMerger has, on this process's stdout or stderr: printable_text() where that is a
/// terminal, the workers' bytes where it is not.
void print_worker_lines(bool is_stderr, const std::string& text);

struct LineMergerOptions {
  bool deduplicate = true;
  /// A line that another worker has written so short a time ago is not shown but counted.
  std::chrono::milliseconds window{5000};
  std::size_t lines_max = 10'000;     // that are remembered
  std::size_t line_bytes_max = 4096;  // longer lines are always shown
};

/// Owns no thread and no clock: feed it lines, and call flush() when due() has come.
class LineMerger {
 public:
  using Print = std::function<void(bool is_stderr, const std::string& text)>;

  explicit LineMerger(Print print, LineMergerOptions options = {})
      : print_(std::move(print)), options_(options) {}

  void add(const LogLines& lines, Deadline now);
  /// Says how often what was seen before `until` was repeated: "(Counter) hello [repeated 63 times
  /// across the cluster]".
  void flush(Deadline until);
  /// When there is something to say; max: nothing.
  Deadline due() const;

 private:
  struct Seen {
    WorkerId first;  // who wrote it first: it is always shown
    std::uint64_t repeated = 0;
    std::string who;
    bool is_stderr = false;
    Deadline since;
  };
  using Table = std::map<std::string, Seen>;

  const Print print_;
  const LineMergerOptions options_;
  Table seen_;
  std::deque<Table::iterator> order_;  // by their time
  std::size_t repeating_ = 0;          // of those seen
};

}  // namespace runtime
