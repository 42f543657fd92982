// The last step's metrics for Prometheus.
#pragma once

#include <filesystem>
#include <string>

#include "rl/metrics/metrics.h"

namespace rl {

/// Replaces `file` whole after each step: what the node exporter's textfile collector reads
/// (--collector.textfile.directory). Each metric is
/// `starling_train{name="actor/pg_loss",project=...,experiment=...}`; starling_train_step says how
/// far the run is.
class PrometheusSink : public MetricSink {
 public:
  PrometheusSink(std::filesystem::path file, const std::string& project,
                 const std::string& experiment);

  runtime::Status write(const StepRecord& record) override;
  std::string place() const override { return file_.string(); }

 private:
  std::filesystem::path file_;
  std::string labels_;
};

}  // namespace rl
