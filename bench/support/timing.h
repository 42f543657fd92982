// Timing and summary of figures for the benchmarks. C++17 and nothing of ours, since the peers'
// programs include it too.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace bench {

using Clock = std::chrono::steady_clock;

inline constexpr int kRounds = 5;  // medians are over these

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The value below which `share` of the values lie (nearest rank); 0 when there are none.
inline double percentile(std::vector<float> values, double share) {
  if (values.empty()) return 0;
  auto at = std::min(values.size() - 1,
                     static_cast<std::size_t>(share * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Seconds per call of `step`: the median over the rounds, each of at least `batch` calls.
template <class Step>
double time_per_call(double seconds, int batch, Step&& step) {
  step();
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    auto start = Clock::now();
    long calls = 0;
    do {
      for (int i = 0; i < batch; ++i) step();
      calls += batch;
    } while (seconds_since(start) < seconds / kRounds);
    rounds.push_back(seconds_since(start) / static_cast<double>(calls));
  }
  return median(std::move(rounds));
}

}  // namespace bench
