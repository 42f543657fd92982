// Metrics as a table for spreadsheets and data frames.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rl/metrics/metrics.h"
#include "runtime/core/result.h"

namespace rl {

/// A header and a row a step: step, total, epoch, phase, then a column for each metric in the order
/// of their first appearance. A cell is empty where a step lacks the metric. A new metric reads and
/// writes the file again, everything else appends to it.
class CsvSink : public MetricSink {
 public:
  /// Rows of `file` up to `last_step` are kept, as JsonLinesSink::open() does. Errors: as errno
  /// says, with the path.
  static runtime::Result<std::unique_ptr<CsvSink>> open(const std::filesystem::path& file,
                                                        std::int64_t last_step);

  runtime::Status write(const StepRecord& record) override;
  std::string place() const override { return path_.string(); }

 private:
  using Row = std::map<std::string, std::string>;

  explicit CsvSink(std::filesystem::path path) : path_(std::move(path)) {}
  std::vector<Row> read(std::int64_t last_step) const;
  bool add_columns(const Row& row);
  std::string line(const Row& row) const;
  runtime::Status rewrite(const std::vector<Row>& rows) const;

  std::filesystem::path path_;
  std::vector<std::string> columns_ = {"step", "total", "epoch", "phase"};
};

}  // namespace rl
