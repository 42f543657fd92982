// A node's record of a job.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "runtime/control/jobs.h"

namespace runtime {

/// The time limit of the head's answers about jobs.
inline constexpr auto kJobHeadTimeout = std::chrono::milliseconds(10000);

/// The command line, cut to what a JobInfo may have.
std::string command_text(const std::vector<std::string>& argv);

}  // namespace runtime
