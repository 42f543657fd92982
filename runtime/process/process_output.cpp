#include "runtime/process/process_output.h"

#include <algorithm>
#include <utility>

namespace runtime {

std::vector<std::string> LineSplitter::feed(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    std::size_t end = bytes.find('\n');
    std::size_t room = kLineBytesMax - partial_.size();
    if (end == std::string_view::npos || end > room) {
      std::size_t taken = std::min(bytes.size(), room);
      partial_.append(bytes.substr(0, taken));
      bytes.remove_prefix(taken);
      if (partial_.size() == kLineBytesMax) lines.push_back(std::move(partial_)), partial_.clear();
      continue;
    }
    partial_.append(bytes.substr(0, end));
    if (!partial_.empty() && partial_.back() == '\r') partial_.pop_back();
    lines.push_back(std::move(partial_));
    partial_.clear();
    bytes.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<std::string> LineSplitter::finish() {
  std::vector<std::string> lines;
  if (!partial_.empty()) lines.push_back(std::move(partial_));
  partial_.clear();
  return lines;
}

void Tail::append(std::string_view bytes) {
  if (bytes.size() >= kBytes) {
    bytes_.assign(bytes.substr(bytes.size() - kBytes));
    return;
  }
  bytes_.append(bytes);
  if (bytes_.size() > kBytes) bytes_.erase(0, bytes_.size() - kBytes);
}

std::string Tail::last_lines(std::size_t lines_max) const {
  std::string_view text = bytes_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  std::size_t start = text.size();
  for (std::size_t line = 0; line < lines_max && start > 0; ++line) {
    std::size_t newline = text.rfind('\n', start - 1);
    if (newline == std::string_view::npos) {
      // The first line may have lost its beginning; better half a line than none.
      start = 0;
      break;
    }
    start = newline;
  }
  if (start < text.size() && text[start] == '\n') ++start;
  return std::string(text.substr(std::min(start, text.size())));
}

}  // namespace runtime
