// A stage for what looks at its sizes and starts nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rl/run/data_stage.h"

namespace rl {

/// A stage that is never started.
class NoStage : public DataStage {
 public:
  runtime::Status open(const StageSetup&) override { return {}; }
  std::int64_t batches_per_epoch() const override { return 1; }
  runtime::Result<std::string> first_row() const override { return std::string(); }
  RowLengths row_lengths() const override { return lengths; }
  runtime::Status start(runtime::Runtime&, const StageSetup&, const WorkerSlots&) override {
    return {};
  }
  std::vector<ProfiledGroup> profiled_groups() const override { return {}; }
  runtime::Status next_batch() override { return {}; }
  runtime::Result<Metrics> step(double) override { return Metrics(); }
  std::int64_t epoch() const override { return 0; }
  bool validates() const override { return false; }
  runtime::Result<Metrics> validate() override { return Metrics(); }
  nlohmann::json position() const override { return {}; }
  runtime::Status resume(const nlohmann::json&) override { return {}; }
  runtime::Result<WriteState> state(bool) const override {
    return runtime::unimplemented("no state");
  }
  runtime::Status load(const std::filesystem::path&) override { return {}; }
  std::vector<std::filesystem::path> frozen_models() const override { return frozen; }

  RowLengths lengths{.longest = 1};
  std::vector<std::filesystem::path> frozen = {};
};

}  // namespace rl
