#include "runtime/node/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include "runtime/node/file_util.h"

namespace runtime {

namespace {

std::string small_file(const char* path) { return read_file(path, 64 << 10).value_or(""); }

}  // namespace

std::string machine_hostname() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

int machine_cpus() {
  cpu_set_t set;
  int cpus = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  // cgroup v2: "max 100000" or "150000 100000" (microseconds of CPU time per period).
  long long quota = 0, period = 0;
  if (std::sscanf(small_file("/sys/fs/cgroup/cpu.max").c_str(), "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0) {
    cpus = std::min(cpus, static_cast<int>(std::max(1ll, quota / period)));
  }
  return std::max(1, cpus);
}

std::uint64_t machine_memory_bytes() {
  std::uint64_t bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  unsigned long long limit = 0;
  if (std::sscanf(small_file("/sys/fs/cgroup/memory.max").c_str(), "%llu", &limit) == 1 && limit > 0) {
    bytes = std::min<std::uint64_t>(bytes, limit);
  }
  return bytes;
}

int machine_gpus() {
  std::error_code error;
  int gpus = 0;
  for (std::filesystem::directory_iterator gpu("/proc/driver/nvidia/gpus", error), end; !error && gpu != end; gpu.increment(error)) ++gpus;
  return gpus;
}

ResourceMap machine_resources() {
  ResourceMap resources{{"CPU", machine_cpus()}, {"memory", static_cast<double>(machine_memory_bytes())}};
  if (int gpus = machine_gpus(); gpus > 0) resources["GPU"] = gpus;
  return resources;
}

}  // namespace runtime
