// LearnerSnapshot: a copy of what a learner saves, so that the files are written while it learns
// on.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rl/model/lora.h"
#include "rl/model/model_config.h"
#include "rl/model/parameters.h"
#include "rl/optim/learner_part.h"
#include "rl/optim/optimizer.h"
#include "runtime/core/result.h"

namespace rl {

/// What was trained, with its optimizer, where it lies. Borrows everything.
struct LearnerState {
  const ModelConfig& config;
  const Parameters& model;
  const LoraAdapter* adapter = nullptr;   // what was trained instead of the model
  std::vector<OptimizerState> optimizer;  // of the whole arena
  std::string optimizer_name;
  std::int64_t optimizer_steps = 0;
  std::vector<at::Tensor> optimizer_memory =
      {};                        // what `optimizer` is in, where a copy may keep it
  at::Tensor host_weights = {};  // the model's weights, where they are not in its arena on the
                                 // CPU; else undefined
};

/// The folders below write_learner()'s that hold the model, or the adapter, and the files with the
/// optimizer's state.
inline constexpr const char* kModelFolder = "huggingface";
inline constexpr const char* kAdapterFolder = "lora_adapter";
inline constexpr const char* kMomentsFile = "optimizer.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.json";

/// Writes `huggingface/` (config and weights), or `lora_adapter/` instead of it, and the
/// optimizer's state into `folder`, made if need be. Returns the files written, relative to it:
/// what a complete checkpoint must contain. Errors: as the files say.
runtime::Result<std::vector<std::filesystem::path>> write_learner(
    const LearnerState& state, const std::filesystem::path& folder);

/// The files of write_learner(), relative to its folder.
std::vector<std::filesystem::path> learner_files(std::span<const ParameterSpec> trained,
                                                 bool is_adapter);

/// Writes kOptimizerFile into `folder`.
runtime::Status write_optimizer_file(const std::string& optimizer, std::int64_t steps,
                                     const std::filesystem::path& folder);

/// A separate value: neither the learner's next steps nor its end change it. Memory: of what is
/// trained three times its size with AdamW (weights and two moments), until it is destroyed.
class LearnerSnapshot {
 public:
  /// Cost: one read and one write of that memory, on at::get_num_threads() threads. The system
  /// takes many times as long to give that much memory.
  explicit LearnerSnapshot(const LearnerState& state);
  /// Of a rank's part alone: see PartSnapshot.
  explicit LearnerSnapshot(const LearnerPart& part);

  /// Becomes a copy of `state`, in the memory that it has. The same learner's as before.
  void retake(const LearnerState& state);
  void retake(const LearnerPart& part);

  /// See write_learner(), and write_part(). Any thread; the learner may be at work meanwhile.
  runtime::Result<std::vector<std::filesystem::path>> write(
      const std::filesystem::path& folder) const;

  /// Which of the two folders below write()'s holds what was trained.
  const char* weights_folder() const { return adapter_ ? kAdapterFolder : kModelFolder; }

 private:
  ModelConfig config_;
  Parameters model_;  // empty where an adapter was trained, or there is a part alone
  std::optional<PartSnapshot> part_;
  std::optional<LoraAdapter> adapter_;
  std::vector<std::string> optimizer_names_;
  std::vector<at::Tensor> optimizer_values_;
  std::string optimizer_name_;
  std::int64_t optimizer_steps_ = 0;
};

}  // namespace rl
