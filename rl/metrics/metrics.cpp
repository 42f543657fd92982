#include "rl/metrics/metrics.h"

#include <algorithm>
#include <numeric>

#include "rl/metrics/held_back.h"
#include "runtime/core/log.h"

namespace rl {

void add_distribution(Metrics& metrics, const std::string& name,
                      const std::vector<double>& values) {
  if (values.empty()) return;
  metrics[name + "/mean"] =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  metrics[name + "/max"] = *std::max_element(values.begin(), values.end());
  metrics[name + "/min"] = *std::min_element(values.begin(), values.end());
}

runtime::Status MetricLogger::Sink::flush() {
  return write_in_order(unwritten,
                        [this](const StepRecord& record) { return place->write(record); });
}

MetricLogger::~MetricLogger() {
  if (const runtime::Status written = flush(); !written.ok())
    LOG(warn, "{}, and are lost", written.message());
}

runtime::Status MetricLogger::flush() {
  runtime::Status first;
  for (Sink& sink : sinks_) {
    const runtime::Status written = sink.flush();
    if (first.ok() && !written.ok())
      first = written.with_context("metrics: " + std::to_string(sink.unwritten.size()) +
                                   " records could not be written");
  }
  return first;
}

void MetricLogger::write(const StepRecord& record) {
  for (Sink& sink : sinks_) {
    const std::size_t waiting = sink.unwritten.size();
    if (waiting == kUnwrittenMax) sink.unwritten.pop_front();
    sink.unwritten.push_back(record);
    const runtime::Status written = sink.flush();
    if (!written.ok() && waiting == 0)
      LOG(warn,
          "metrics: {}; training continues, and records that could not be written are retried at "
          "each "
          "step",
          written.message());
    if (written.ok() && waiting > 0)
      LOG(info, "metrics: {} has the {} records that could not be written before",
          sink.place->place().empty() ? "the console" : sink.place->place(), waiting);
  }
}

std::vector<std::string> MetricLogger::places() const {
  std::vector<std::string> places;
  for (const Sink& sink : sinks_) {
    if (std::string place = sink.place->place(); !place.empty()) places.push_back(std::move(place));
  }
  return places;
}

}  // namespace rl
