// The input of a role's passes: rows to pack, outputs to ask for, and a loss.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "rl/batch/batch_plan.h"
#include "rl/metrics/metrics.h"
#include "rl/model/packed_batch.h"
#include "rl/model/transformer.h"
#include "runtime/core/result.h"

namespace rl {

/// For a position in a team: not the passes of one rank, but those of all as one; see JointPass.
inline constexpr int kTogether = -1;

/// What the passes of a role read, and what each is asked for.
struct PassInput {
  std::function<PackedBatch(const MicroBatch& rows)> pack;
  OutputOptions wanted;
};

/// The loss of a micro-batch, with its graph, as its part of the mini-batch's; adds its metrics.
/// Undefined: nothing to learn.
using PassLoss = std::function<runtime::Result<at::Tensor>(
    const Outputs& outputs, const MicroBatch& rows, const PackedBatch& packed, Metrics& metrics)>;

}  // namespace rl
