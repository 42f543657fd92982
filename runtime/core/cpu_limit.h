// The number of CPUs that this process may use.
#pragma once

#include <filesystem>

namespace runtime {

/// The number of CPUs that this process may run on, or the smallest quota of its cgroups (version 2
/// and 1), whichever is less. A quota may be a part of one. `root` is where proc and sys are looked
/// for.
double cpu_limit(const std::filesystem::path& root = "/");

/// As many threads as keep them busy: cpu_limit() rounded up, at least 1.
int cpu_threads();

}  // namespace runtime
