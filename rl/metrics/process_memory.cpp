#include "rl/metrics/process_memory.h"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace rl {
namespace {

constexpr double kKibPerGb = 1024.0 * 1024.0;

}  // namespace

double peak_memory_gb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / kKibPerGb;
}

runtime::Result<Metrics> with_peak_memory(runtime::Result<Metrics> metrics) {
  if (metrics.ok()) (*metrics)["perf/max_memory_allocated_gb"] = peak_memory_gb();
  return metrics;
}

double machine_memory_used_gb() {
  std::ifstream file("/proc/meminfo");
  double total = 0.0;
  double available = 0.0;
  std::string name;
  std::string rest;
  for (double kib = 0.0; file >> name >> kib && std::getline(file, rest);) {
    if (name == "MemTotal:") total = kib;
    if (name == "MemAvailable:") available = kib;
  }
  return (total - available) / kKibPerGb;
}

}  // namespace rl
