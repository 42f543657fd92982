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
#include "rl/model/offload.h"
#include "rl/model/transformer.h"
#include "runtime/core/result.h"

namespace rl {

struct ReferenceOptions {
  std::filesystem::path model;
  std::filesystem::path adapter = {};  // a folder as PEFT saves it; empty: none
  int threads = 1;
  std::string device = {};   // see find_device()
  float temperature = 1.0F;  // that of the rollout
  MicroBatchLimits micro_batch;
  KlPenalty penalty{.estimator = KlEstimator::kK1};  // of the KL in the reward
  bool bf16 = false;                                 // see PassOptions
  bool offload = false;  // of a model on a device: its weights leave it between calls
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
  /// Errors: those of Transformer::load.
  static runtime::Result<std::unique_ptr<ReferenceWorker>> create(const ReferenceOptions& options);

  /// `micro_batches`: its passes over the samples; none: one. kInvalidArgument: an inconsistent
  /// batch, passes over other samples, an id outside the vocabulary.
  runtime::Result<ReferenceScores> score(const RolloutBatch& batch,
                                         std::span<const MicroBatch> micro_batches = {});

  /// What one of its passes may take. It does not learn.
  PassLimits pass_limits() const { return {.learning = {}, .scoring = options_.micro_batch}; }

 private:
  ReferenceWorker(const ReferenceOptions& options, std::unique_ptr<Transformer> model)
      : options_(options),
        model_(std::move(model)),
        offload_(*model_, {.parameters = options.offload}) {}

  ReferenceOptions options_;
  std::unique_ptr<Transformer> model_;
  Offload offload_;
};

}  // namespace rl
