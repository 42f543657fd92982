// StreamedPasses: the passes of a pipeline, several of them in flight.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/mesh/pass_schedule.h"
#include "rl/metrics/metrics.h"
#include "rl/model/dropout.h"
#include "rl/model/pass_options.h"
#include "rl/model/stage_stream.h"
#include "rl/model/transformer.h"
#include "rl/worker/pass_input.h"
#include "runtime/core/result.h"

namespace rl {

/// 1F1B (Narayanan et al. 2021, arXiv:2104.04473): a stage makes some forward passes ahead, and
/// then a forward and a backward pass in turn; see pass_schedule(). Gradients are added in the
/// order of passes, so that they have the bits of passes one after the other. Memory: a stage has
/// the activations of chunks_in_flight_max() chunks' passes at a time. The ranks are stages of one
/// rank each, of a model whose stream() is not null; all of them call it with as many
/// micro-batches. Borrows the model.
class StreamedPasses {
 public:
  /// Passes of the rank at that position, where the loss is computed: the others' gradients come
  /// from there.
  StreamedPasses(const Transformer& model, const PassOptions& options, int turn);

  /// As Passes::learn, without a sum of the gradients over ranks. `loss` is called by another
  /// thread, for one pass after the other.
  runtime::Status learn(std::span<const MicroBatch> micro_batches, const PassInput& input,
                        const PassLoss& loss, Metrics& metrics);

 private:
  struct Pass {
    MicroBatch rows;
    PackedBatch packed;
    DropoutPass dropped;
    std::vector<ChunkPass> made;  // by the stage's own chunks
  };

  bool is_own() const { return stream_.stage() == turn_; }
  runtime::Status pack(std::span<const MicroBatch> micro_batches, const PassInput& input);
  runtime::Status run(const PassInput& input, const PassLoss& loss, Metrics& metrics);
  runtime::Status forward(const PassStep& step, const PassInput& input);
  runtime::Status backward(const PassStep& step, const PassLoss& loss, Metrics& metrics);
  runtime::Status backward_of_last(Pass& pass, const PassLoss& loss, Metrics& metrics);
  void settle_embeddings(std::size_t waiting);
  // Of the rank whose rows they are.
  runtime::Status compute_losses(const PassLoss& loss, Metrics& metrics);
  runtime::Status compute_loss(const Pass& pass, const PassLoss& loss, Metrics& metrics);

  const Transformer& model_;
  const PassOptions options_;
  StageStream& stream_;
  const int turn_;
  std::vector<Pass> passes_;                                   // without idle ones
  runtime::Status loss_failure_;                               // of a loss itself
  std::deque<std::shared_ptr<const forward::Rows>> embedded_;  // whose gradients are missing
  std::vector<std::size_t> embedded_max_;  // at each pass, without waiting for the first stage
};

}  // namespace rl
