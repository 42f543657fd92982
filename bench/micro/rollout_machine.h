// The machine of bench_rollout and its limits: bandwidth, FMA peak, resident memory.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "rl/kernel/kernel.h"

namespace bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Spread {
  double median = 0;
  double relative = 0;  // (max - min) / median
};

inline Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double median = values[values.size() / 2];
  return {median, (values.back() - values.front()) / median};
}

// Bytes per second that all threads together read from memory: the best of several passes over more
// than any cache holds.
inline double measure_bandwidth(rl::kernel::ThreadPool& pool) {
  std::vector<std::uint64_t> data(std::size_t{64} << 20, 1);  // 512 MiB
  double best = 0;
  std::atomic<std::uint64_t> sink{0};
  for (int pass = 0; pass < 6; ++pass) {
    const Clock::time_point start = Clock::now();
    pool.parallel_for(static_cast<std::int64_t>(data.size()), 1 << 16,
                      [&](std::int64_t begin, std::int64_t end) {
                        std::uint64_t sums[16] = {};
                        for (std::int64_t i = begin; i < end; i += 16) {
                          for (int lane = 0; lane < 16; ++lane)
                            sums[lane] += data[static_cast<std::size_t>(i + lane)];
                          __builtin_prefetch(&data[0] + i + 512);
                          __builtin_prefetch(&data[0] + i + 520);
                        }
                        sink += std::accumulate(std::begin(sums), std::end(sums), std::uint64_t{0});
                      });
    best = std::max(
        best, static_cast<double>(data.size() * sizeof(std::uint64_t)) / seconds_since(start));
  }
  return sink.load() == 0 ? 0 : best;
}

// Floating-point operations per second of the matrix kernel on operands that stay in the caches.
inline double measure_peak(rl::kernel::ThreadPool& pool) {
  const std::int64_t rows = 128, in = 1024, out = 768;
  const std::vector<float> x(static_cast<std::size_t>(rows * in), 0.5F),
      w(static_cast<std::size_t>(out * in), 0.25F);
  std::vector<float> y(static_cast<std::size_t>(rows * out));
  double best = 0;
  for (int pass = 0; pass < 60; ++pass) {
    const Clock::time_point start = Clock::now();
    rl::kernel::linear(pool, x.data(), rows, in, w.data(), nullptr, out, y.data());
    best = std::max(best, 2.0 * static_cast<double>(rows * in * out) / seconds_since(start));
  }
  return best;
}

// Bytes of a mapping that are in memory.
inline double resident_bytes(const void* begin, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  if (mincore(const_cast<void*>(begin), bytes, pages.data()) != 0) return 0;
  return static_cast<double>(page) *
         static_cast<double>(std::count_if(pages.begin(), pages.end(),
                                           [](unsigned char flags) { return (flags & 1) != 0; }));
}

// Bytes of this process that are in memory.
inline double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Runnable programs over the last minute, this one included.
inline double load_average() {
  std::ifstream file("/proc/loadavg");
  double load = 0;
  file >> load;
  return load;
}

inline std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

inline std::string commit() {
  std::string text;
  if (FILE* pipe = popen("git rev-parse HEAD 2>/dev/null", "r")) {
    char buffer[64];
    if (std::fgets(buffer, sizeof buffer, pipe) != nullptr) text = buffer;
    pclose(pipe);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "unknown" : text;
}

}  // namespace bench
