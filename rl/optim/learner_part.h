// LearnerPart: one rank's part of a checkpoint that all ranks write together.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "rl/mesh/packed_ranges.h"
#include "rl/model/lora.h"
#include "rl/model/model_config.h"
#include "rl/model/parameters.h"
#include "rl/optim/optimizer.h"
#include "runtime/core/result.h"

namespace rl {

/// A rank's part of what is trained, where it lies. Borrows everything.
struct LearnerPart {
  int rank = 0;
  const ModelConfig& config;
  std::span<const ParameterSpec> trained;  // of the model, or of the adapter
  const LoraAdapter* adapter = nullptr;    // what was trained instead of the model
  const PackedRanges& home;  // the elements that this rank writes; those of all ranks are the arena
  // The model's weights, packed: of these elements, which have the home's among them. Empty next to
  // an adapter, which rank 0 writes whole.
  const PackedRanges& kept;
  std::span<const float> weights;
  std::vector<OptimizerState> optimizer;  // of the home, packed
  std::string optimizer_name;
  std::int64_t optimizer_steps = 0;
};

/// Writes the rank's ranges of the files that write_learner() writes; rank 0 what is around them,
/// too. Ranks need not wait for each other: when all have returned, the files in `folder` are those
/// of write_learner(), byte for byte. The folder's parent is there, and no reader looks before.
/// Returns the files, relative to it, on rank 0; nothing elsewhere. Errors: those of SharedFile,
/// with the rank.
runtime::Result<std::vector<std::filesystem::path>> write_part(const LearnerPart& part,
                                                               const std::filesystem::path& folder);

/// A copy of a part, to be written later. Memory: of the home three times its size with AdamW.
class PartSnapshot {
 public:
  explicit PartSnapshot(const LearnerPart& part);

  /// Becomes a copy of `part`, in the memory that it has. The same learner's as before.
  void retake(const LearnerPart& part);

  /// See write_part(). `config` and `adapter` are those of the part, which it has no copy of.
  runtime::Result<std::vector<std::filesystem::path>> write(
      const ModelConfig& config, const LoraAdapter* adapter,
      const std::filesystem::path& folder) const;

 private:
  void copy(const LearnerPart& part);

  int rank_;
  std::vector<ParameterSpec> trained_;
  PackedRanges home_;
  at::Tensor weights_;  // of the home
  std::vector<std::string> optimizer_names_;
  std::vector<at::Tensor> optimizer_values_;
  std::string optimizer_name_;
  std::int64_t optimizer_steps_ = 0;
};

}  // namespace rl
