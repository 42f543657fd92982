#include "rl/optim/learner_snapshot.h"

#include <ATen/ops/from_blob.h>

#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "rl/model/save.h"
#include "rl/model/tensor_span.h"
#include "rl/weights/atomic_file.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

const at::Tensor& weights_of(const LearnerState& state) {
  return state.host_weights.defined() ? state.host_weights : state.model.arena();
}

Parameters model_of(const LearnerState& state) {
  return Parameters::in_arena({state.model.specs().begin(), state.model.specs().end()},
                              weights_of(state));
}

Parameters copy_of_model(const LearnerState& state) {
  if (state.adapter != nullptr) return Parameters::zeros(std::vector<ParameterSpec>());
  return model_of(state).clone();
}

}  // namespace

Result<std::vector<std::filesystem::path>> write_learner(const LearnerState& state,
                                                         const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return runtime::errno_status(error.value(), "making " + folder.string());
  const Parameters& trained = state.adapter != nullptr ? state.adapter->parameters() : state.model;
  const PackedRanges all({{0, trained.arena_size()}});
  const at::Tensor weights = state.adapter != nullptr ? at::Tensor() : weights_of(state).cpu();
  LearnerPart part{.rank = 0,
                   .config = state.config,
                   .trained = trained.specs(),
                   .adapter = state.adapter,
                   .home = all,
                   .kept = all,
                   .weights = {},
                   .optimizer = state.optimizer,
                   .optimizer_name = state.optimizer_name,
                   .optimizer_steps = state.optimizer_steps};
  if (weights.defined()) part.weights = elements_of(weights);
  return write_part(part, folder);
}

std::vector<std::filesystem::path> learner_files(std::span<const ParameterSpec> trained,
                                                 bool is_adapter) {
  const std::filesystem::path weights = is_adapter ? kAdapterFolder : kModelFolder;
  std::vector<std::filesystem::path> files{kMomentsFile, kOptimizerFile};
  for (const std::filesystem::path& file :
       is_adapter ? LoraAdapter::files() : model_folder_files(trained))
    files.push_back(weights / file);
  return files;
}

Status write_optimizer_file(const std::string& optimizer, std::int64_t steps,
                            const std::filesystem::path& folder) {
  const nlohmann::ordered_json state{{"optimizer", optimizer}, {"steps", steps}};
  return write_file_atomically(folder / kOptimizerFile, state.dump(2) + "\n");
}

LearnerSnapshot::LearnerSnapshot(const LearnerState& state)
    : config_(state.config),
      model_(copy_of_model(state)),
      optimizer_name_(state.optimizer_name),
      optimizer_steps_(state.optimizer_steps) {
  if (state.adapter != nullptr) adapter_ = state.adapter->to(at::kCPU);
  optimizer_values_ = state.optimizer_memory;
  for (const OptimizerState& part : state.optimizer) {
    optimizer_names_.push_back(part.name);
    if (!state.optimizer_memory.empty()) continue;
    optimizer_values_.push_back(at::from_blob(part.values.data(),
                                              {static_cast<std::int64_t>(part.values.size())},
                                              at::kFloat)
                                    .clone());
  }
}

LearnerSnapshot::LearnerSnapshot(const LearnerPart& part)
    : config_(part.config), model_(Parameters::zeros(std::vector<ParameterSpec>())), part_(part) {
  if (part.adapter != nullptr) adapter_ = part.adapter->to(at::kCPU);
}

void LearnerSnapshot::retake(const LearnerPart& part) {
  if (part_ && part.adapter == nullptr && !adapter_)
    part_->retake(part);
  else
    *this = LearnerSnapshot(part);
}

void LearnerSnapshot::retake(const LearnerState& state) {
  bool fits = state.adapter == nullptr && !adapter_ && !part_ &&
              model_.arena().numel() == state.model.arena().numel() &&
              optimizer_values_.size() == state.optimizer.size();
  for (std::size_t i = 0; fits && i < optimizer_values_.size(); ++i)
    fits =
        optimizer_values_[i].numel() == static_cast<std::int64_t>(state.optimizer[i].values.size());
  if (!fits) {
    *this = LearnerSnapshot(state);
    return;
  }
  model_.arena().copy_(weights_of(state));
  if (!state.optimizer_memory.empty()) {
    optimizer_values_ = state.optimizer_memory;
  } else {
    for (std::size_t i = 0; i < optimizer_values_.size(); ++i) {
      const std::span<float> values = state.optimizer[i].values;
      optimizer_values_[i].copy_(
          at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat));
    }
  }
  optimizer_steps_ = state.optimizer_steps;
}

Result<std::vector<std::filesystem::path>> LearnerSnapshot::write(
    const std::filesystem::path& folder) const {
  const LoraAdapter* const adapter = adapter_ ? &*adapter_ : nullptr;
  if (part_) return part_->write(config_, adapter, folder);
  std::vector<OptimizerState> optimizer;
  for (std::size_t i = 0; i < optimizer_names_.size(); ++i) {
    const at::Tensor& values = optimizer_values_[i];
    optimizer.push_back({optimizer_names_[i], std::span(values.mutable_data_ptr<float>(),
                                                        static_cast<std::size_t>(values.numel()))});
  }
  const LearnerState state{config_,         model_,           adapter, std::move(optimizer),
                           optimizer_name_, optimizer_steps_, {},      {}};
  return write_learner(state, folder);
}

}  // namespace rl
