#include "runtime/node/process_output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/core/log.h"
#include "runtime/node/log_position.h"

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

LogFile::LogFile(std::filesystem::path file, std::uint64_t bytes_max)
    : path_(std::move(file)), bytes_max_(bytes_max) {
  if (Status status = reopen(); !status.ok()) LOG(warn, "{}", status.message());
}

Status LogFile::reopen() {
  fd_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd_) return errno_status(errno, "opening log " + path_.string());
  ::flock(fd_.get(),
          LOCK_SH | LOCK_NB);  // as long as it is open, nobody takes it for an old one (LogKeeper)
  struct stat info;
  bytes_ = ::fstat(fd_.get(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
  return {};
}

Status LogFile::write(std::string_view bytes) {
  if (!fd_) {
    if (Status status = reopen(); !status.ok()) return status;
  }
  while (!bytes.empty()) {
    ssize_t put = ::write(fd_.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return errno_status(put < 0 ? errno : ENOSPC, "writing to log " + path_.string());
    bytes_ += static_cast<std::uint64_t>(put);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

void LogFile::append(std::string_view bytes) {
  if (bytes_ + bytes.size() > bytes_max_ && bytes_ > 0) {
    std::filesystem::path old = path_;
    old += ".1";
    std::error_code ignored;
    std::filesystem::rename(path_, old, ignored);
    fd_.reset();
    bytes_ = 0;
    if (reopen().ok()) note_rotation(path_);  // else write() tries again
  }
  Status status;
  if (lost_ > 0)
    status = write("\n[" + std::to_string(lost_) + " bytes could not be written here]\n");
  if (status.ok() && lost_ > 0)
    LOG(info, "log {} is written again; {} bytes are lost", path_.string(),
        std::exchange(lost_, 0));
  if (status.ok()) status = write(bytes);
  if (status.ok()) return;
  if (lost_ == 0)
    LOG(warn, "{}; what is to go there is lost until there is room", status.message());
  lost_ += bytes.size();
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
