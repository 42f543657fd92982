#include "runtime/node/log_keeper.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/core/log.h"
#include "runtime/node/daemon.h"
#include "runtime/node/file_util.h"
#include "runtime/node/log_position.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr const char* kNodeLog = "node.log";

bool is_in_use(const fs::path& file) {
  if (file.filename() == kNodeLog) return true;
  if (const fs::path log = log_of_position(file); !log.empty()) {  // goes with its log
    std::error_code ignored;
    return fs::exists(log, ignored);
  }
  // Who writes to it holds a lock (LogFile).
  FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0;
}

}  // namespace

void trim_logs(const fs::path& folder, std::uint64_t bytes_max) {
  remove_oldest(folder, bytes_max, is_in_use);
}

LogKeeper::LogKeeper(EventLoop& loop, LogKeeperOptions options)
    : options_(std::move(options)), timer_(loop.context()) {
  arm();
}

void LogKeeper::arm() {
  timer_.expires_after(options_.period);
  timer_.async_wait([this, alive = alive_](boost::system::error_code ec) {
    if (ec || !*alive) return;
    look();
    arm();
  });
}

void LogKeeper::look() {
  rotate_node_log();
  trim_logs(options_.folder, options_.bytes_max);
}

void LogKeeper::rotate_node_log() {
  const fs::path log = options_.folder / kNodeLog;
  struct stat file, output;
  const bool is_output = ::stat(log.c_str(), &file) == 0 && ::fstat(STDERR_FILENO, &output) == 0 &&
                         file.st_ino == output.st_ino && file.st_dev == output.st_dev;
  if (!is_output || static_cast<std::uint64_t>(file.st_size) < options_.node_log_bytes_max)
    return;  // in the foreground it is somebody else's
  fs::path old = log;
  old += ".1";
  std::error_code error;
  fs::rename(log, old, error);
  if (Status status = redirect_output(log.string()); !status.ok())
    return LOG(warn, "{}", status.message());
  note_rotation(log);
}

}  // namespace runtime
