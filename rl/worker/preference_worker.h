// The role that learns from preferences: a policy from pairs or single responses, or a reward
// model. Plain C++; the actor around it is in preference_actor.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "rl/batch/preference_batch.h"
#include "rl/comm/communicator.h"
#include "rl/metrics/metrics.h"
#include "rl/optim/learner.h"
#include "rl/worker/frozen_model.h"
#include "rl/worker/frozen_sharding.h"
#include "rl/worker/passes.h"
#include "rl/worker/policy_options.h"
#include "rl/worker/preference_objective.h"
#include "runtime/core/result.h"

namespace rl {

struct PreferenceWorkerOptions {
  std::filesystem::path model;
  std::filesystem::path reference;         // empty: the model that training begins with
  FrozenSharding reference_sharding = {};  // where it is its own model
  int threads = 1;
  std::string device = {};  // see find_device()
  PreferenceObjective objective;
  LearnerOptions learner;
  std::optional<AdapterOptions> adapter;  // nothing: all weights are trained
  bool recompute_layers = false;          // see PassOptions
  bool bf16 = false;                      // see PassOptions
  std::uint64_t seed = 0;                 // of a reward model's first head
};

/// One data-parallel rank. The reference is a separate frozen model or, where an adapter is
/// trained, the base under what training began with. Ranks call the same methods in the same order;
/// update() and evaluate() are collective. A resource; one thread at a time.
class PreferenceWorker {
 public:
  /// Errors: those of Transformer::load and LoraAdapter; kUnimplemented: a reward model's adapter,
  /// which its head would not be part of.
  static runtime::Result<std::unique_ptr<PreferenceWorker>> create(
      const PreferenceWorkerOptions& options, TrainingRanks ranks);

  /// One optimizer step on the mean loss over `totals`. Returns the objective's metrics, grad_norm
  /// and skipped_updates as this worker's part: summed over the workers they are the whole.
  /// kInvalidArgument: sizes that do not fit, pairs where single responses are learned or the other
  /// way round. Others: those of Learner::apply.
  runtime::Result<Metrics> update(const PreferenceBatch& batch, const PreferencePasses& passes,
                                  const PreferenceTotals& totals, double learning_rate);

  /// The objective's metrics without a step. KTO's divergence is that of this batch over all
  /// workers, `batch_rows` in all.
  runtime::Result<Metrics> evaluate(const PreferenceBatch& batch, const PreferencePasses& passes,
                                    const PreferenceTotals& totals, std::int64_t batch_rows);

  /// What Learner::save writes, and the tokenizer next to the model or adapter. The reference is
  /// not saved: it is read again from where it came from.
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
  runtime::Status check_weights() { return learner_.check_equal_weights(); }

  const Learner& learner() const { return learner_; }

 private:
  // Log-probs under the reference: constants.
  struct Reference {
    at::Tensor responses_P;
    at::Tensor others_P;
  };

  PreferenceWorker(const PreferenceWorkerOptions& options, std::unique_ptr<Transformer> model,
                   std::unique_ptr<FrozenModel> reference, TrainingRanks ranks)
      : options_(options),
        learner_(std::move(model), std::move(ranks), options.learner),
        reference_(std::move(reference)) {}

  runtime::Status check(const PreferenceBatch& batch, const PreferencePasses& passes,
                        const PreferenceTotals& totals) const;
  runtime::Result<Reference> refer(const PreferenceBatch& batch, const PreferencePasses& passes);
  runtime::Result<double> divergence(const PreferenceBatch& batch, const PreferencePasses& passes,
                                     const at::Tensor& reference_P, std::int64_t rows);
  // Runs the passes over the rows, with backward where they are learned.
  runtime::Result<Metrics> run(const PreferenceBatch& batch, const PreferencePasses& passes,
                               const PreferenceTotals& totals, std::int64_t batch_rows, bool learn);
  PassInput input(const PreferenceBatch& batch) const;
  // The loss of some rows.
  runtime::Result<at::Tensor> loss(const PreferenceBatch& batch, const MicroBatch& rows,
                                   const Outputs& outputs, const PackedBatch& packed,
                                   const Reference& reference, double divergence,
                                   const PreferenceTotals& totals, Metrics& metrics) const;
  PassOptions pass_options() const {
    return {.bf16 = options_.bf16, .recompute_layers = options_.recompute_layers};
  }

  PreferenceWorkerOptions options_;
  Learner learner_;
  std::unique_ptr<FrozenModel> reference_;  // null: none is needed, or the base of an adapter is it
};

}  // namespace rl
