#include "runtime/process/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "runtime/core/disk_space.h"
#include "runtime/core/log.h"
#include "runtime/process/file_lock.h"
#include "runtime/process/log_position.h"

namespace runtime {

namespace fs = std::filesystem;

LogFile::LogFile(fs::path file, std::uint64_t bytes_max, LogRoom* room)
    : path_(std::move(file)), bytes_max_(bytes_max), room_(room) {
  if (Status status = reopen(); !status.ok()) LOG(warn, "{}", status.message());
  if (room_) room_->add(*this);
}

LogFile::~LogFile() {
  if (room_) room_->remove(*this);
  std::error_code error;
  if (fd_ && bytes_ == 0 && !fs::exists(older(), error)) fs::remove(path_, error);
}

fs::path LogFile::older() const {
  fs::path older = path_;
  return older += ".1";
}

Status LogFile::reopen() {
  fd_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd_) return errno_status(errno, "opening log " + path_.string());
  if (Status status = lock_open_file(fd_.get(), path_); !status.ok())
    LOG(debug, "{}", status.message());  // two write to it; either keeps it
  struct stat info;
  bytes_ = ::fstat(fd_.get(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
  return {};
}

void LogFile::rotate() {
  std::error_code ignored;
  fs::rename(path_, older(), ignored);
  fd_.reset();
  bytes_ = 0;
  if (reopen().ok()) note_rotation(path_);  // else write() tries again
}

void LogFile::cut() {
  const std::uint64_t removed = bytes_;
  std::error_code ignored;
  fs::remove(older(), ignored);  // first, for the room that the rest may take
  rotate();
  fs::remove(older(), ignored);
  const Status status = write("[" + std::to_string(removed) +
                              " bytes were removed from here: the logs' disk is nearly full, or "
                              "they take more than --log-limit]\n");
  if (!status.ok()) LOG(warn, "{}", status.message());
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

/// With a line before it that says what is missing.
Status LogFile::write_with_gap(std::string_view bytes) {
  if (lost_ > 0) {
    Status status = write("\n[" + std::to_string(lost_) + " bytes could not be written here]\n");
    if (!status.ok()) return status;
    LOG(info, "log {} is written again; {} bytes are lost", path_.string(),
        std::exchange(lost_, 0));
  }
  return write(bytes);
}

void LogFile::append(std::string_view bytes) {
  Status status;
  if (room_ && !room_->admit(bytes.size())) {
    status = resource_exhausted("log " + path_.string() + ": its disk is nearly full: " +
                                (lost_ == 0 ? disk_text(path_.parent_path()) : ""));
  } else {
    const std::uint64_t limit = room_ ? std::min(bytes_max_, room_->file_bytes_max()) : bytes_max_;
    if (bytes_ + bytes.size() > limit && bytes_ > 0) rotate();
    status = write_with_gap(bytes);
  }
  if (status.ok()) return;
  if (lost_ == 0)
    LOG(warn, "{}; what is to go there is lost until there is room", status.message());
  lost_ += bytes.size();
}

}  // namespace runtime
