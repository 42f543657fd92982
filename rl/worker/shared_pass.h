// SharedPass: the values that ranks of a shared pass exchange.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "rl/model/packed_batch.h"
#include "rl/model/transformer.h"
#include "rl/worker/output_gradients.h"
#include "rl/worker/pass_input.h"
#include "runtime/core/result.h"

namespace rl {

/// The passes of the rank at one position of the model's PassTeam. Of a model without one they are
/// all this rank's own, and nothing is told. All ranks of a team make the same calls. Errors: those
/// of Communicator. Borrows the model.
class SharedPass {
 public:
  SharedPass(const Transformer& model, int turn);

  /// Whether the rows are this rank's.
  bool is_own() const;

  /// What `pack` gives where the rows are this rank's; elsewhere what it gave there.
  runtime::Result<PackedBatch> packed(const std::function<PackedBatch()>& pack) const;
  /// The same of a micro-batch; empty where nothing is to be computed of it.
  runtime::Result<PackedBatch> packed(const MicroBatch& rows, const PassInput& input) const;

  /// Goes back from the loss of the outputs, which is computed where the rows are; an undefined one
  /// makes an idle backward pass. Errors: those of `loss`; kResourceExhausted: out of memory.
  runtime::Status backward(const Outputs& outputs, const LossOfOutputs& loss) const;

 private:
  runtime::Status back_together(const Outputs& outputs, const LossOfOutputs& loss) const;

  const Transformer& model_;
  const int turn_;
};

/// What `input` packs of the rows; empty where nothing is to be computed of them.
PackedBatch pack_unless_idle(const MicroBatch& rows, const PassInput& input);

/// backward() with its failure (out of memory, above all) as kResourceExhausted.
runtime::Status backward(const at::Tensor& loss);

}  // namespace rl
