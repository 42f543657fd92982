// `starling timeline`.
#pragma once

#include <chrono>
#include <string>

namespace placement {

struct TimelineOptions {
  std::string address;
  std::string output = "trace.json";
  double seconds = 5;
};

/// Returns the exit code.
int timeline_command(const TimelineOptions& options);

}  // namespace placement
