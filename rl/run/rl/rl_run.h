// RlRun: a run of reinforcement learning, put together from its configuration.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "rl/checkpoint/folder_lock.h"
#include "rl/run/rl/credit_factory.h"
#include "rl/run/rl/rl_plan.h"
#include "rl/run/rl/rl_stage.h"
#include "rl/run/rl/role_starter.h"
#include "rl/run/rl/roles.h"
#include "rl/run/rl/run_cluster.h"
#include "rl/run/rl/source_factory.h"
#include "rl/run/rl/trainer_options.h"
#include "rl/run/run_journal.h"
#include "rl/run/training_run.h"
#include "runtime/core/result.h"

namespace rl {

/// Owns all parts of a run. A resource; one thread at a time. Borrows the cluster's spawner and the
/// journal.
class RlRun {
 public:
  /// Starts the workers of a plan, and continues from its checkpoint.
  static runtime::Result<std::unique_ptr<RlRun>> start(const RunCluster& cluster, RlPlan plan,
                                                       RunJournal& journal);

  RlRun(const RlRun&) = delete;
  RlRun& operator=(const RlRun&) = delete;

  const TrainerOptions& options() const { return plan_.options; }
  TrainingRun& training() { return *training_; }
  const TrainingRun& training() const { return *training_; }
  /// Null: there are no validation data.
  Validator* validator() { return validator_.get(); }
  const Validator* validator() const { return validator_.get(); }

  /// What happens once before the first step.
  runtime::Status begin() { return stage_->begin(); }

  /// Continues from a checkpoint that is found not to be another command's or model's.
  runtime::Status load_checkpoint(const std::filesystem::path& folder);

  /// What a full disk held back of samples.
  runtime::Status flush_dumps();

 private:
  RlRun(RoleSpawner& spawner, RlPlan plan, RunJournal& journal);
  runtime::Status start_roles(const RunCluster& cluster);
  void make_parts();
  void make_stage();
  runtime::Status open_logs();
  runtime::Status begin_training(std::int64_t steps_done);

  // What the stage borrows.
  struct Parts {
    std::unique_ptr<PromptSource> prompts;
    CreditParts credit;
    Balancer balancer;
    References references;
    std::unique_ptr<SampleSource> source;
    UpdatePhase update;
    SkippedUpdates skipped;
    SampleDump rollout_dump;
    SampleDump validation_dump;
    std::unique_ptr<RlCheckpoint> checkpoint;
  };

  RlPlan plan_;
  RunJournal& journal_;
  RoleStarter starter_;
  Roles roles_;
  RoleCalls calls_;
  std::unique_ptr<Parts> parts_;
  std::unique_ptr<Validator> validator_;
  std::unique_ptr<RlStage> stage_;
  std::vector<FolderLock> sample_locks_;
  std::unique_ptr<TrainingRun> training_;  // last, since its thread uses the rest
};

}  // namespace rl
