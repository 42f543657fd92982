#include "runtime/process/log_keeper.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime/core/disk_space.h"
#include "runtime/core/log.h"
#include "runtime/process/daemon.h"
#include "runtime/process/file_lock.h"
#include "runtime/process/file_util.h"
#include "runtime/process/log_position.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr const char* kNodeLog = "node.log";
constexpr std::uint64_t kDiskParts = 4;  // logs may take one of them
constexpr std::uint64_t kFileParts = 4;  // of the logs' budget: a log begins again at one of them
constexpr std::uint64_t kCreditBytes = 1 << 20;
constexpr auto kCreditLasts = std::chrono::seconds(1);
constexpr auto kRefusedFor = std::chrono::milliseconds(200);
constexpr std::uint64_t kCutBytesMin = 16 << 10;  // less is not worth it

bool is_log_in_use(const fs::path& file) {
  if (file.filename() == kNodeLog) return true;
  if (const fs::path log = log_of_position(file); !log.empty()) {  // goes with its log
    std::error_code ignored;
    return fs::exists(log, ignored);
  }
  return is_locked(file);
}

std::uint64_t bytes_in(const fs::path& folder) {
  std::uint64_t total = 0;
  for (const FolderFile& file : files_in(folder)) total += file.bytes;
  return total;
}

}  // namespace

void trim_logs(const fs::path& folder, std::uint64_t bytes_max, std::size_t files_max) {
  std::vector<FolderFile> files = files_in(folder);
  std::sort(files.begin(), files.end(),
            [](const FolderFile& a, const FolderFile& b) { return a.written_ns < b.written_ns; });
  std::uint64_t total = 0;
  for (const FolderFile& file : files) total += file.bytes;
  std::size_t count = files.size();
  for (const FolderFile& file : files) {
    if (total <= bytes_max && count <= files_max) return;
    if (is_log_in_use(file.path)) continue;
    std::error_code ignored;
    if (!fs::remove(file.path, ignored)) continue;
    total -= file.bytes;
    --count;
  }
}

LogKeeper::LogKeeper(EventLoop& loop, LogKeeperOptions options)
    : options_(std::move(options)), timer_(loop.context()), budget_(options_.bytes_max) {
  arm();
}

LogKeeper::~LogKeeper() {
  lifetime_.end();
  // A worker's log may last until the last answer of its process has been given up.
  for (RoomLog* log : open_) log->leave_room();
}

void LogKeeper::arm() {
  timer_.expires_after(options_.period);
  timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (ec) return;
    look();
    arm();
  }));
}

void LogKeeper::look() {
  make_room(0);
  if (is_node_log_ours()) {
    std::error_code error;
    const std::uint64_t bytes = fs::file_size(options_.folder / kNodeLog, error);
    if (!error && bytes >= std::min(options_.node_log_bytes_max, file_bytes_max()))
      rotate_node_log();
  }
}

std::uint64_t LogKeeper::file_bytes_max() const {
  return std::max(kBytesMin, budget_) / kFileParts;
}

bool LogKeeper::admit(std::uint64_t bytes) {
  const Deadline now = steady_now();
  if (now < refused_until_) return false;
  if (bytes > credit_ || now > looked_ + kCreditLasts) make_room(bytes);
  is_refusing_ = bytes > credit_;
  if (is_refusing_) {
    refused_until_ = now + kRefusedFor;
    return false;
  }
  credit_ -= bytes;
  return true;
}

void LogKeeper::make_room(std::uint64_t bytes) {
  looked_ = steady_now();
  credit_ = std::max(bytes, kCreditBytes);  // of a disk that cannot be asked
  auto disk = disk_space(options_.folder);
  if (!disk.ok()) return;
  std::uint64_t total = bytes_in(options_.folder);
  budget_ = std::max(kBytesMin, std::min(options_.bytes_max, share_of(*disk, total, kDiskParts)));
  // A part of it at a time, so that it is not looked for with every line.
  const bool is_over = total + bytes > budget_;
  const std::uint64_t target = is_over ? budget_ - std::min(budget_, bytes + budget_ / 8) : budget_;
  trim_logs(options_.folder, target, options_.files_max);
  if (is_over) {
    cut_largest(target);
    total = bytes_in(options_.folder);
    disk = disk_space(options_.folder);
    if (!disk.ok()) return;
  }
  // Once too little was free, somewhat more has to be, or each log would begin and stop all the
  // time.
  const std::uint64_t kept = kept_free_bytes(*disk) * (is_refusing_ ? 5 : 4) / 4;
  const std::uint64_t on_disk = disk->free_bytes > kept ? disk->free_bytes - kept : 0;
  const std::uint64_t in_budget = budget_ > total ? budget_ - total : 0;
  credit_ = std::min({credit_, on_disk, in_budget});
}

void LogKeeper::cut_largest(std::uint64_t bytes_max) {
  std::uint64_t total = bytes_in(options_.folder);
  std::error_code error;
  std::uint64_t node_log =
      is_node_log_ours() ? fs::file_size(options_.folder / kNodeLog, error) : 0;
  while (total > bytes_max) {
    const auto largest = std::max_element(
        open_.begin(), open_.end(),
        [](const RoomLog* a, const RoomLog* b) { return a->bytes() < b->bytes(); });
    const std::uint64_t bytes = largest == open_.end() ? 0 : (*largest)->bytes();
    if (std::max(bytes, node_log) < kCutBytesMin) return;
    if (bytes >= node_log) {
      (*largest)->cut();
      total -= std::min(total, bytes);
      continue;
    }
    rotate_node_log();
    fs::path older = options_.folder / kNodeLog;
    fs::remove(older += ".1", error);
    LOG(warn, "{} bytes were removed from here for room: {}", node_log, disk_text(options_.folder));
    total -= std::min(total, std::exchange(node_log, 0));
  }
}

/// Not in the foreground: there the node writes to its caller's output.
bool LogKeeper::is_node_log_ours() const {
  struct stat file, output;
  return ::stat((options_.folder / kNodeLog).c_str(), &file) == 0 &&
         ::fstat(STDERR_FILENO, &output) == 0 && file.st_ino == output.st_ino &&
         file.st_dev == output.st_dev;
}

void LogKeeper::rotate_node_log() {
  const fs::path log = options_.folder / kNodeLog;
  fs::path old = log;
  old += ".1";
  std::error_code error;
  fs::rename(log, old, error);
  if (Status status = redirect_output(log.string()); !status.ok())
    return LOG(warn, "{}", status.message());
  note_rotation(log);
}

}  // namespace runtime
