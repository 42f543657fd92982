// LogKeeper: keeps a node's folder of logs within bounds.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "runtime/core/timer.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

struct LogKeeperOptions {
  std::filesystem::path folder;
  std::uint64_t bytes_max =
      2ull
      << 30;  // of all logs; those of what still runs stay in any case, but for their older halves
  std::uint64_t node_log_bytes_max = 64ull << 20;  // then node.log becomes node.log.1
  std::chrono::milliseconds period{30'000};
};

/// Lives on the event loop.
class LogKeeper {
 public:
  LogKeeper(EventLoop& loop, LogKeeperOptions options);
  LogKeeper(const LogKeeper&) = delete;
  LogKeeper& operator=(const LogKeeper&) = delete;
  ~LogKeeper() { *alive_ = false; }

  /// Every `period`.
  void look();

 private:
  void arm();
  void rotate_node_log();

  const LogKeeperOptions options_;
  Timer timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// Removes the logs that were written to longest ago until the rest has `bytes_max`. A LogFile that
/// is open is not removed.
void trim_logs(const std::filesystem::path& folder, std::uint64_t bytes_max);

}  // namespace runtime
