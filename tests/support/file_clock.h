// The clock that the kernel stamps files with, which ticks every few milliseconds only.
#pragma once

#include <chrono>
#include <ctime>

#include "tests/support/eventually.h"

namespace support {

/// Returns once files that are written have another time than those written before.
inline bool await_file_clock() {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &time);
    return time.tv_sec * 1'000'000'000L + time.tv_nsec;
  };
  const auto before = now();
  return eventually([&] { return now() != before; }, std::chrono::seconds(20),
                    std::chrono::milliseconds(1));
}

}  // namespace support
