// SampleDump: the samples of steps and validations as files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rl/run/rl/credit_assigner.h"
#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/rollout_dump.h"
#include "rl/run/rl/step_batch.h"
#include "runtime/core/result.h"

namespace rl {

/// Samples with what is known of each, in the order of the batches.
struct DumpedBatch {
  BatchRefs batches;
  std::vector<std::vector<RewardTask>> tasks;
  std::vector<std::vector<double>> scores;
  std::vector<std::map<std::string, double>> extras = {};
  std::vector<std::vector<float>> advantages = {};
};

class SampleDump {
 public:
  /// No folder: nothing is written.
  SampleDump(std::filesystem::path folder, ScoreCalls& reward)
      : folder_(std::move(folder)), reward_(reward) {}

  bool is_wanted() const { return !folder_.empty(); }

  /// With `append` behind what there is of that step. Training is worth more than what is kept to
  /// look at: what goes wrong is a warning.
  void write(std::int64_t step, bool append, const DumpedBatch& batch);

  /// See RolloutDumper.
  runtime::Status flush() { return dumper_.flush(); }

 private:
  std::filesystem::path folder_;
  ScoreCalls& reward_;
  RolloutDumper dumper_;
};

/// A step's samples with their advantages as the objective will see them: one a sample, or one of
/// each of its learned tokens. Errors: those of EstimateCalls::get.
runtime::Result<DumpedBatch> dumped_step(const StepBatch& batch, const Credit& credit,
                                         const EstimateCalls& estimates);

}  // namespace rl
