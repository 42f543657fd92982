// The supervised role: learns tokens that are given. Plain C++; the actor around it is in sft_actor.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <tuple>
#include <vector>

#include "rl/train/communicator.h"
#include "rl/train/learner.h"
#include "rl/train/supervised_batch.h"
#include "rl/watch/metrics.h"
#include "rl/worker/policy_options.h"
#include "runtime/core/result.h"

namespace rl {

struct SftWorkerOptions {
  std::filesystem::path model;
  int threads = 1;
  LearnerOptions learner;
  MicroBatchLimits micro_batch;
  std::optional<AdapterOptions> adapter;  // nothing: all weights are trained
};

/// Sums over a worker's rows; those of the workers add up.
struct SupervisedSums {
  double loss = 0.0;  // negative log-likelihood of the tokens to learn
  std::int64_t tokens = 0;

  auto fields() { return std::tie(loss, tokens); }
};

/// One data-parallel rank. Ranks call the same methods in the same order; update() is collective. A resource; one thread at a time.
class SftWorker {
 public:
  /// Errors: those of Transformer::load and LoraAdapter.
  static runtime::Result<std::unique_ptr<SftWorker>> create(const SftWorkerOptions& options, std::unique_ptr<Communicator> communicator);

  /// One optimizer step: the mean negative log-likelihood over the `tokens_total` tokens to learn of all workers, in passes of the micro-batch's size.
  /// Returns train/loss, train/grad_norm and train/skipped_updates as this worker's part: summed over the workers they are the whole.
  /// kInvalidArgument: sizes that do not fit. Others: those of Learner::apply.
  runtime::Result<Metrics> update(const SupervisedBatch& batch, std::int64_t tokens_total, double learning_rate);

  /// Without a graph.
  runtime::Result<SupervisedSums> evaluate(const SupervisedBatch& batch);

  /// What Learner::save writes, and the tokenizer beside the model or adapter.
  runtime::Result<std::vector<std::filesystem::path>> save(const std::filesystem::path& folder);
  runtime::Status load(const std::filesystem::path& folder) { return learner_.load(folder); }

  const Learner& learner() const { return learner_; }

 private:
  SftWorker(const SftWorkerOptions& options, std::unique_ptr<Transformer> model, std::unique_ptr<Communicator> communicator)
      : options_(options), learner_(std::move(model), std::move(communicator), options.learner) {}

  SftWorkerOptions options_;
  Learner learner_;
};

}  // namespace rl
