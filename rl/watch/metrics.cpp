#include "rl/watch/metrics.h"

#include <algorithm>
#include <numeric>

#include "runtime/core/log.h"

namespace rl {

void add_distribution(Metrics& metrics, const std::string& name, const std::vector<double>& values) {
  if (values.empty()) return;
  metrics[name + "/mean"] = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  metrics[name + "/max"] = *std::max_element(values.begin(), values.end());
  metrics[name + "/min"] = *std::min_element(values.begin(), values.end());
}

void MetricLogger::write(const StepRecord& record) {
  std::erase_if(sinks_, [&](const std::unique_ptr<MetricSink>& sink) {
    const runtime::Status written = sink->write(record);
    if (!written.ok()) LOG(warn, "metrics: {}; this log ends here, training goes on", written.message());
    return !written.ok();
  });
}

std::vector<std::string> MetricLogger::places() const {
  std::vector<std::string> places;
  for (const auto& sink : sinks_) {
    if (std::string place = sink->place(); !place.empty()) places.push_back(std::move(place));
  }
  return places;
}

}  // namespace rl
