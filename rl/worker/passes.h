// The passes of a model over a worker's micro-batches: one loop for all roles that learn or score.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>

#include "rl/batch/batch_plan.h"
#include "rl/metrics/metrics.h"
#include "rl/model/packed_batch.h"
#include "rl/model/pass_options.h"
#include "rl/model/transformer.h"
#include "rl/worker/pass_input.h"
#include "runtime/core/result.h"

namespace rl {

/// Runs one pass per micro-batch. Ranks that train one model together must run the same number of
/// passes in the same order. A rank has an idle micro-batch where only others have rows left. Where
/// a PassTeam shares the model's passes, its ranks make those of each in turn, together. The rank
/// whose turn it is brings the rows and has the outputs. Its loss gives the others their gradients.
/// Borrows the model.
class Passes {
 public:
  using Take = std::function<runtime::Status(const Outputs& outputs, const MicroBatch& rows,
                                             const PackedBatch& packed)>;

  Passes(const Transformer& model, const PassOptions& options) : model_(model), options_(options) {}

  const Transformer& model() const { return model_; }

  /// Forward and backward: adds to the model's gradients. Of a team in the passes of the rank at
  /// position `turn`, or kTogether where JointPass::is_possible(). Errors: those of
  /// Transformer::outputs and of `loss`; kResourceExhausted: out of memory in the backward pass.
  runtime::Status learn(std::span<const MicroBatch> micro_batches, const PassInput& input,
                        const PassLoss& loss, Metrics& metrics, int turn = 0) const;

  /// Forward without a graph. Errors: those of Transformer::outputs and of `take`.
  runtime::Status score(std::span<const MicroBatch> micro_batches, const PassInput& input,
                        const Take& take) const;

 private:
  // The rows of a pass; empty where nothing is to be computed.
  using Pack = std::function<runtime::Result<PackedBatch>(const MicroBatch& rows)>;

  runtime::Status check_shared(const OutputOptions& wanted) const;
  runtime::Status learn_together(std::span<const MicroBatch> micro_batches, const PassInput& input,
                                 const PassLoss& loss, Metrics& metrics) const;
  runtime::Status run(std::span<const MicroBatch> micro_batches, const OutputOptions& wanted,
                      const Pack& pack, const Take& take) const;

  const Transformer& model_;
  PassOptions options_;
};

}  // namespace rl
