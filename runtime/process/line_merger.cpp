#include "runtime/process/line_merger.h"

#include <unistd.h>

#include <cstdio>

#include "runtime/core/printable_text.h"

namespace runtime {

void print_worker_lines(bool is_stderr, const std::string& text) {
  std::FILE* const out = is_stderr ? stderr : stdout;
  const std::string shown = terminal_text(::fileno(out), text);
  std::fwrite(shown.data(), 1, shown.size(), out);
  std::fflush(out);
}

void LineMerger::add(const LogLines& lines, Deadline now) {
  flush(now - options_.window);
  std::string text;
  for (const std::string& line : lines.lines) {
    if (options_.deduplicate && !line.empty() && line.size() <= options_.line_bytes_max) {
      auto found = seen_.find(line);
      if (found != seen_.end() && found->second.first != lines.worker) {
        if (++found->second.repeated == 1) ++repeating_;
        continue;
      }
      // One worker's own repetitions are as it wants them.
      if (found == seen_.end() && seen_.size() < options_.lines_max) {
        order_.push_back(
            seen_
                .emplace(line, Seen{lines.worker, 0,
                                    lines.class_name.empty() ? "worker" : lines.class_name,
                                    lines.is_stderr, now})
                .first);
      }
    }
    text += lines.prefix() + line + "\n";
  }
  if (!text.empty()) print_(lines.is_stderr, text);
}

void LineMerger::flush(Deadline until) {
  while (!order_.empty() && order_.front()->second.since <= until) {
    const Table::iterator oldest = order_.front();
    order_.pop_front();
    const Seen& seen = oldest->second;
    if (seen.repeated > 0) {
      --repeating_;
      print_(seen.is_stderr,
             "(" + seen.who + ") " + oldest->first + " [repeated " + std::to_string(seen.repeated) +
                 (seen.repeated == 1 ? " time" : " times") + " across the cluster]\n");
    }
    seen_.erase(oldest);
  }
}

Deadline LineMerger::due() const {
  return repeating_ == 0 ? Deadline::max() : order_.front()->second.since + options_.window;
}

}  // namespace runtime
