// From recordings to what people look at: a file in Chrome's trace event format, and where a step's
// time went.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rl/profile/recording.h"

namespace rl::profile {

/// One process of a profile: a role's rank, or the controller.
struct ProfiledProcess {
  std::string name;           // "policy 0"
  std::int64_t ahead_ns = 0;  // its clock less that of the controller
  Recording recording;
};

/// The trace as JSON
/// (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): a process per
/// entry, its threads, their spans as complete events in microseconds since `from_ns`. Perfetto
/// (ui.perfetto.dev) and chrome://tracing open it. "otherData" says what was cut.
std::string chrome_trace(std::span<const ProfiledProcess> processes, std::int64_t from_ns);

/// A lap of the controller, and what the workers' calling threads did in it.
struct LapUse {
  std::string name;
  double seconds = 0.0;
  double share = 0.0;  // of all laps
  std::vector<std::pair<std::string, double>>
      operations;  // seconds of a worker's thread in the operation itself, not in operations inside
                   // it; greatest first
};

/// The laps that took longest, greatest first. Kernels of ATen count for the operation around them;
/// outside of operations for themselves.
std::vector<LapUse> time_use(std::span<const ProfiledProcess> processes);

}  // namespace rl::profile
