#include "runtime/call/execution_options.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace runtime {

Status ExecutionOptions::check() const {
  std::uint64_t total = max_concurrency;
  if (max_concurrency == 0) return invalid_argument("max_concurrency is 0: no call would ever run");
  if (concurrency_groups.size() > kConcurrencyGroupsMax) {
    return invalid_argument(std::to_string(concurrency_groups.size()) +
                            " concurrency groups are more than " +
                            std::to_string(kConcurrencyGroupsMax));
  }
  for (const auto& [name, limit] : concurrency_groups) {
    if (name.empty())
      return invalid_argument(
          "a concurrency group without a name: the default one is max_concurrency");
    if (limit == 0) return invalid_argument("concurrency group \"" + name + "\" allows no calls");
    total += limit;
  }
  if (total > kConcurrencyMax) {
    return invalid_argument(std::to_string(total) + " calls at once are more than the " +
                            std::to_string(kConcurrencyMax) + " that one actor may run");
  }
  for (std::uint32_t core : cpu_affinity) {
    if (core >= CPU_SETSIZE)
      return invalid_argument("cpu_affinity: core " + std::to_string(core) + " is above " +
                              std::to_string(CPU_SETSIZE - 1));
  }
  return {};
}

Status pin_process(const std::vector<std::uint32_t>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const long configured = ::sysconf(_SC_NPROCESSORS_CONF);
  for (std::uint32_t core : cores) {
    if (core >= static_cast<std::uint32_t>(std::max(1L, configured)) || core >= CPU_SETSIZE) {
      return invalid_argument("cpu_affinity: there is no core " + std::to_string(core) +
                              ": the machine has " + std::to_string(configured));
    }
    CPU_SET(core, &set);
  }
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const pid_t thread = std::atoi(task.path().filename().c_str());
    if (::sched_setaffinity(thread, sizeof set, &set) == 0 || errno == ESRCH)
      continue;  // ESRCH: it has ended meanwhile
    return errno_status(errno,
                        "cpu_affinity: this process may use none of those cores (the machine has " +
                            std::to_string(std::thread::hardware_concurrency()) + ")");
  }
  return error ? errno_status(error.value(), "/proc/self/task") : Status();
}

}  // namespace runtime
