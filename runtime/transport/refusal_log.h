// RefusalLog: log lines about connections that were refused. Strangers can cause as many as they
// like, so it writes a few for each while, then a count.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "runtime/core/clock.h"
#include "runtime/core/status.h"

namespace runtime {

struct RefusalLogOptions {
  std::uint32_t lines_max = 10;  // in each while
  std::chrono::milliseconds span{10'000};
};

/// Of one thread.
class RefusalLog {
 public:
  /// `what` is refused, for instance "a caller at ".
  explicit RefusalLog(std::string what = {}, RefusalLogOptions options = {})
      : what_(std::move(what)), options_(options) {}

  void note(const std::string& peer, const Status& why);
  /// Refused, and not written down, since the last line that said so.
  std::uint64_t unwritten() const { return unwritten_; }

 private:
  const std::string what_;
  const RefusalLogOptions options_;
  Deadline begun_ = Deadline::min();
  std::uint32_t lines_ = 0;
  std::uint64_t unwritten_ = 0;
};

}  // namespace runtime
