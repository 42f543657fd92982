#include "runtime/core/cpu_limit.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "runtime/core/cgroup.h"

namespace runtime {

namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

/// Microseconds of CPU time per period, over the period.
double cpu_quota(const CgroupFolder& group) {
  double quota = 0, period = 0;
  if (group.is_v2) {
    // "max 100000" or "150000 100000"; "max" does not parse and is none.
    std::ifstream(group.path / "cpu.max") >> quota >> period;
  } else {
    std::ifstream(group.path / "cpu.cfs_quota_us") >> quota;  // -1: none
    std::ifstream(group.path / "cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : kNoQuota;
}

}  // namespace

double cpu_limit(const std::filesystem::path& root) {
  cpu_set_t set;
  CPU_ZERO(&set);
  double cpus = ::sched_getaffinity(0, sizeof set, &set) == 0
                    ? CPU_COUNT(&set)
                    : static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  for (const CgroupFolder& group : cgroup_folders("cpu", root))
    cpus = std::min(cpus, cpu_quota(group));
  return cpus;
}

int cpu_threads() { return std::max(1, static_cast<int>(std::ceil(cpu_limit()))); }

}  // namespace runtime
