// The reference role: log-probabilities under weights that never change.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "rl/algo/kl.h"
#include "rl/batch/batch_plan.h"
#include "rl/batch/rollout_batch.h"
#include "rl/comm/communicator.h"
#include "rl/model/offload.h"
#include "rl/worker/frozen_model.h"
#include "rl/worker/frozen_sharding.h"
#include "runtime/core/result.h"

namespace rl {

struct ReferenceOptions {
  std::filesystem::path model;
  std::filesystem::path adapter = {};  // a folder as PEFT saves it; empty: none
  int threads = 1;
  std::string device = {};   // see find_device()
  float temperature = 1.0F;  // that of the rollout
  MicroBatchLimits micro_batch = {};
  KlPenalty penalty{.estimator = KlEstimator::kK1};  // of the KL in the reward
  bool bf16 = false;                                 // see PassOptions
  bool offload = false;          // of a model on a device: its weights leave it between calls
  FrozenSharding sharding = {};  // over the workers of the role
};

/// What the reference says of a RolloutBatch.
struct ReferenceScores {
  std::vector<float> logprobs;  // of the learned tokens
  std::vector<double>
      kl_penalties;  // [samples]: estimated KL to the reference, summed over the response's tokens

  auto fields() { return std::tie(logprobs, kl_penalties); }
};

/// A frozen model. A resource; one thread at a time.
class ReferenceWorker {
 public:
  /// `ranks`: those that keep the weights once; null: they are whole. Errors: those of
  /// Transformer::load.
  static runtime::Result<std::unique_ptr<ReferenceWorker>> create(
      const ReferenceOptions& options, std::unique_ptr<Communicator> ranks = nullptr);

  /// `micro_batches`: its passes over the samples, as many on every rank; none: one. Collective
  /// where weights are kept once. kInvalidArgument: an inconsistent batch, passes over other
  /// samples, an id outside the vocabulary. Others: those of Communicator.
  runtime::Result<ReferenceScores> score(const RolloutBatch& batch,
                                         std::span<const MicroBatch> micro_batches = {});

  /// What one of its passes may take. It does not learn.
  PassLimits pass_limits() const { return {.learning = {}, .scoring = options_.micro_batch}; }

  /// Where this rank stands, and the end of what it does with the others; see Communicator. Alone
  /// it stands nowhere. From any thread.
  Pulse pulse() const { return ranks_ ? ranks_->pulse() : Pulse(); }
  void abort(const runtime::Status& why) const {
    if (ranks_) ranks_->abort(why);
  }

 private:
  ReferenceWorker(const ReferenceOptions& options, std::unique_ptr<Communicator> ranks,
                  std::unique_ptr<FrozenModel> model)
      : options_(options),
        ranks_(std::move(ranks)),
        model_(std::move(model)),
        // What the workers keep once is on the host between passes.
        offload_(model_->transformer(), {.parameters = options.offload && !model_->is_shared()}) {}

  ReferenceOptions options_;
  std::unique_ptr<Communicator> ranks_;
  std::unique_ptr<FrozenModel> model_;
  Offload offload_;
};

}  // namespace rl
