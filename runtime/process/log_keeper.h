// LogKeeper: keeps a node's folder of logs within bounds that follow its disk.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>

#include "runtime/core/clock.h"
#include "runtime/core/lifetime.h"
#include "runtime/core/timer.h"
#include "runtime/process/log_room.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

struct LogKeeperOptions {
  std::filesystem::path folder;
  std::uint64_t bytes_max = 2ull << 30;  // of all logs, if a quarter of what the disk has is more
  std::size_t files_max = 1000;
  std::uint64_t node_log_bytes_max = 64ull << 20;  // then node.log becomes node.log.1
  std::chrono::milliseconds period{30'000};
};

/// All logs together take at most `bytes_max`, and a quarter of what the disk has for them. They
/// leave a part of the disk free (kept_free_bytes()), for the journal. To make room, logs of what
/// has ended go first, and older halves, the oldest first. Then the largest logs begin again. What
/// would still take too much is not written. Lives on the event loop.
class LogKeeper final : public LogRoom {
 public:
  /// The least that logs may take, unless the disk is nearly full.
  static constexpr std::uint64_t kBytesMin = 256 << 10;

  LogKeeper(EventLoop& loop, LogKeeperOptions options);
  LogKeeper(const LogKeeper&) = delete;
  LogKeeper& operator=(const LogKeeper&) = delete;
  ~LogKeeper();

  /// Every `period`.
  void look();

  bool admit(std::uint64_t bytes) override;
  std::uint64_t file_bytes_max() const override;
  void add(RoomLog& log) override { open_.insert(&log); }
  void remove(RoomLog& log) override { open_.erase(&log); }

 private:
  void arm();
  void make_room(std::uint64_t bytes);
  void cut_largest(std::uint64_t bytes_max);
  bool is_node_log_ours() const;
  void rotate_node_log();

  const LogKeeperOptions options_;
  Timer timer_;
  std::set<RoomLog*> open_;
  std::uint64_t budget_;      // of all logs, as of the last look at the disk
  std::uint64_t credit_ = 0;  // may be written before the next one
  Deadline looked_{};
  bool is_refusing_ = false;
  Deadline refused_until_{};
  Lifetime lifetime_;
};

/// Removes the logs that were written to longest ago until the rest has `bytes_max` and
/// `files_max`. Neither one that is open as a LogFile nor node.log is removed.
void trim_logs(const std::filesystem::path& folder, std::uint64_t bytes_max,
               std::size_t files_max = LogKeeperOptions{}.files_max);

}  // namespace runtime
