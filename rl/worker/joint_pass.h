// JointPass: one pass of a team with the rows of all its ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "rl/model/packed_batch.h"
#include "rl/model/transformer.h"
#include "rl/worker/output_gradients.h"
#include "rl/worker/pass_input.h"
#include "runtime/core/result.h"

namespace rl {

/// Where SharedPass has the rows of one rank, this has those of all, in the order of ranks. It is
/// one pass instead of one for each rank, and its gradients have the bits of a rank that makes it
/// alone. Each rank computes the loss of its rows. All ranks of a team make the same calls. Errors:
/// those of Communicator. Borrows the model.
class JointPass {
 public:
  /// Whether the model's team can. It cannot as the stages of a pipeline, whose ranks have passes
  /// in flight instead. Nor can it with dealt experts, or with an adapter, of which one rank has
  /// the gradient of a pass. Nor with outputs that are not rows: states, and numbers of logits.
  static bool is_possible(const Transformer& model, const OutputOptions& wanted);

  explicit JointPass(const Transformer& model) : model_(model) {}

  /// The rows of all ranks; empty where nothing is to be computed of any.
  runtime::Result<PackedBatch> packed(const MicroBatch& rows, const PassInput& input);
  /// What this rank brought.
  const PackedBatch& own() const { return own_; }

  /// Goes back from the losses of all ranks' outputs. `loss` gets this rank's part of them, and is
  /// not called where it has no rows. Where no rank learns it makes an idle backward pass. Errors:
  /// those of `loss`; kResourceExhausted: out of memory.
  runtime::Status backward(const Outputs& outputs, const LossOfOutputs& loss) const;

 private:
  // What a row of an output is of.
  enum class RowOf : std::uint8_t { kTarget, kToken, kSequence };

  // How far the rows reach that ranks brought, one after the other.
  struct Extent {
    std::int64_t tokens = 0;
    std::int64_t sequences = 0;
    std::int64_t targets = 0;
  };

  void append(PackedBatch& all, const PackedBatch& part);
  // The rows of an output of that rank, a view.
  at::Tensor rows_of(const at::Tensor& output, RowOf row, int rank) const;
  RowOf row_of_heads() const { return last_tokens_only_ ? RowOf::kSequence : RowOf::kToken; }
  Outputs part_of(const Outputs& outputs, int rank) const;
  // By output with a graph.
  std::vector<RowOf> rows_with_graph(const Outputs& outputs) const;
  runtime::Status back_together(const Outputs& outputs, const LossOfOutputs& loss) const;

  const Transformer& model_;
  PackedBatch own_;
  bool last_tokens_only_ = false;  // see OutputOptions
  std::vector<Extent> ends_;       // by rank
};

}  // namespace rl
