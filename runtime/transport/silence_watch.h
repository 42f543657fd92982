// SilenceWatch: a TCP peer whose machine acknowledges nothing any more.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "runtime/core/timer.h"

namespace runtime {

/// TCP itself goes on for many minutes, longer and longer between one try and the next. On the
/// event loop.
class SilenceWatch {
 public:
  /// Four seconds leave a link that is cut for less than ten the time to come back before its
  /// machine counts as lost.
  static constexpr std::chrono::seconds kTick{1};
  static constexpr int kTicksMax = 4;

  explicit SilenceWatch(asio::io_context& context) : timer_(context) {}

  /// Asks `is_silent` every kTick; calls `on_silent` when it was so kTicksMax times in a row. Ends
  /// with stop() or with `owner`, which has this, or when on_silent returns false.
  void start(std::weak_ptr<const void> owner, std::function<bool()> is_silent,
             std::function<bool()> on_silent);
  void stop() {
    is_stopped_ = true;
    timer_.cancel();
  }

 private:
  void tick();

  Timer timer_;
  std::weak_ptr<const void> owner_;
  std::function<bool()> is_silent_;
  std::function<bool()> on_silent_;
  bool is_stopped_ = false;
  int silent_ticks_ = 0;  // in which the peer's machine acknowledged nothing of what was on its way
};

}  // namespace runtime
