// RlCheckpoint: the contents of a checkpoint of reinforcement learning, and resuming.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "rl/checkpoint/model_identity.h"
#include "rl/config/config.h"
#include "rl/feed/prompt_feed.h"
#include "rl/run/rl/credit_phase.h"
#include "rl/run/rl/reward_shaper.h"
#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/sample_source.h"
#include "rl/run/rl/trainer_options.h"
#include "rl/run/stage.h"
#include "runtime/core/result.h"

namespace rl {

/// What a stage asks of its checkpoints.
class StageState {
 public:
  virtual ~StageState() = default;
  virtual nlohmann::ordered_json state(const RunProgress& progress, std::int64_t epoch) const = 0;
  virtual runtime::Result<CheckpointSaver::WriteFiles> copy(bool async,
                                                            nlohmann::ordered_json state) const = 0;
  virtual runtime::Result<SavedAt> restore(const std::filesystem::path& folder,
                                           const nlohmann::ordered_json& state) = 0;
};

class RlCheckpoint : public StageState {
 public:
  /// Borrows all of it.
  RlCheckpoint(const Config& config, const TrainerOptions& options, const ModelIdentity& identity,
               StateCalls& models, PromptFeed& feed, SampleSource& source, CreditPhase& credit)
      : config_(config),
        options_(options),
        identity_(identity),
        models_(models),
        feed_(feed),
        source_(source),
        credit_(credit),
        restored_{.kl_coefficient = options.kl_control.coefficient} {}

  nlohmann::ordered_json state(const RunProgress& progress, std::int64_t epoch) const override;
  runtime::Result<CheckpointSaver::WriteFiles> copy(bool async,
                                                    nlohmann::ordered_json state) const override;
  runtime::Result<SavedAt> restore(const std::filesystem::path& folder,
                                   const nlohmann::ordered_json& state) override;

 private:
  runtime::Result<SavedAt> check(const std::filesystem::path& file,
                                 const nlohmann::ordered_json& state) const;
  RewardState read_rewards(const nlohmann::ordered_json& state) const;
  runtime::Status load(const std::filesystem::path& folder, const nlohmann::ordered_json& state,
                       const SavedAt& at);

  const Config& config_;
  const TrainerOptions& options_;
  const ModelIdentity& identity_;
  StateCalls& models_;
  PromptFeed& feed_;
  SampleSource& source_;
  CreditPhase& credit_;
  RewardState restored_;  // what is no part's now stays as it was
};

/// kInvalidArgument: the checkpoint is of another command or model.
runtime::Status check_rl_checkpoint(const std::filesystem::path& folder, const Config& config,
                                    const ModelIdentity& identity);

}  // namespace rl
