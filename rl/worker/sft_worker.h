// The supervised role: learns tokens that are given. Plain C++; the actor around it is in
// sft_actor.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rl/algo/distillation.h"
#include "rl/batch/batch_plan.h"
#include "rl/batch/supervised_batch.h"
#include "rl/comm/communicator.h"
#include "rl/metrics/metrics.h"
#include "rl/optim/learner.h"
#include "rl/worker/passes.h"
#include "rl/worker/policy_options.h"
#include "runtime/core/result.h"

namespace rl {

/// A frozen model whose distributions the student learns besides the tokens of the data.
struct TeacherOptions {
  std::filesystem::path model;
  DistillationOptions loss;

  /// From `distillation.*`, with the path as it is written; nothing without
  /// distillation.teacher.path. kInvalidArgument: a value out of range, by key.
  static runtime::Result<std::optional<TeacherOptions>> from_config(const Config& config);
};

struct SftWorkerOptions {
  std::filesystem::path model;
  int threads = 1;
  std::string device = {};  // see find_device()
  LearnerOptions learner;
  std::optional<AdapterOptions> adapter;  // nothing: all weights are trained
  bool recompute_layers = false;          // see PassOptions
  bool bf16 = false;                      // see PassOptions
  std::optional<TeacherOptions> teacher;  // nothing: the data alone
};

/// Sums over a worker's rows; those of the workers add up.
struct SupervisedSums {
  double loss = 0.0;  // negative log-likelihood of the tokens to learn
  double kl = 0.0;    // distillation_kl to the teacher, where there is one
  std::int64_t tokens = 0;

  auto fields() { return std::tie(loss, kl, tokens); }
};

/// One data-parallel rank. Ranks call the same methods in the same order; update() is collective. A
/// resource; one thread at a time.
class SftWorker {
 public:
  /// Errors: those of Transformer::load and LoraAdapter; kInvalidArgument: a teacher that is a
  /// classifier.
  static runtime::Result<std::unique_ptr<SftWorker>> create(const SftWorkerOptions& options,
                                                            TrainingRanks ranks);

  /// One optimizer step: the mean negative log-likelihood over the plan's tokens to learn of all
  /// workers. With a teacher the mean of distillation_loss. Returns train/loss (with a teacher
  /// train/ce_loss and train/kl, too), train/grad_norm and train/skipped_updates as this worker's
  /// part: summed over the workers they are the whole. kInvalidArgument: sizes that do not fit.
  /// Others: those of Learner::apply.
  runtime::Result<Metrics> update(const SupervisedBatch& batch, const SupervisedPlan& plan);

  /// Evaluates the batch without a graph, in the planned passes; none: in one.
  runtime::Result<SupervisedSums> evaluate(const SupervisedBatch& batch,
                                           std::span<const MicroBatch> planned = {});

  /// What Learner::save writes, and the tokenizer next to the model or adapter.
  runtime::Result<std::vector<std::filesystem::path>> save(const std::filesystem::path& folder);
  /// The same as a copy, and written: see Learner::snapshot(). Written on any thread, while the
  /// worker is at work.
  runtime::Result<bool> agree_on_parts(const std::filesystem::path& root) {
    return learner_.agree_on_parts(root);
  }
  runtime::Status collect_state() { return learner_.collect_state(); }
  void snapshot(std::unique_ptr<LearnerSnapshot>& into) { learner_.snapshot(into); }
  runtime::Result<std::vector<std::filesystem::path>> write(
      const LearnerSnapshot& snapshot, const std::filesystem::path& folder) const;
  runtime::Status load(const std::filesystem::path& folder) { return learner_.load(folder); }

  const Learner& learner() const { return learner_; }

 private:
  SftWorker(const SftWorkerOptions& options, std::unique_ptr<Transformer> model,
            TrainingRanks ranks)
      : options_(options), learner_(std::move(model), std::move(ranks), options.learner) {}

  PassInput input(const SupervisedBatch& batch) const;
  // A pass's loss, times `scale` with a graph where that is above 0; adds the pass's sums.
  runtime::Result<at::Tensor> loss(const Outputs& outputs, const PackedBatch& packed, double scale,
                                   SupervisedSums& sums) const;
  runtime::Result<at::Tensor> distilled_loss(const at::Tensor& states_NH, const PackedBatch& packed,
                                             double scale, SupervisedSums& sums) const;
  // The same of a team, of what teacher_losses() has made of each row.
  at::Tensor distilled_loss(const at::Tensor& losses_N2, double scale, SupervisedSums& sums) const;
  // Cross entropy and KL to the teacher.
  std::pair<at::Tensor, at::Tensor> losses_of(const at::Tensor& own_NV,
                                              const at::Tensor& teacher_NV,
                                              const at::Tensor& targets_N1) const;
  runtime::Result<OfLogits> teacher_losses(const PackedBatch& packed) const;
  runtime::Result<at::Tensor> teacher_states(const PackedBatch& packed) const;
  PassOptions pass_options() const {
    return {.bf16 = options_.bf16, .recompute_layers = options_.recompute_layers};
  }

  SftWorkerOptions options_;
  Learner learner_;
  std::unique_ptr<Transformer> teacher_;  // null without one
};

}  // namespace rl
