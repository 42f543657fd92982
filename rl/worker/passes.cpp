#include "rl/worker/passes.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/GradMode.h>

#include "rl/model/guarded.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// An idle pass computes nothing: its rank is only there for what the ranks of a pass do together.
bool is_idle(const PackedBatch& packed, const OutputOptions& wanted) {
  return packed.ids.empty() || (packed.targets.empty() && wanted.heads.empty());
}

}  // namespace

Status Passes::learn(std::span<const MicroBatch> micro_batches, const PassInput& input,
                     const Loss& loss, Metrics& metrics) const {
  return run(micro_batches, input,
             [&](const Outputs& outputs, const MicroBatch& rows, const PackedBatch& packed) {
               const Result<at::Tensor> part = loss(outputs, rows, packed, metrics);
               if (!part.ok()) return part.status();
               return part->defined() ? backward(*part) : model_.idle_backward();
             });
}

Status Passes::score(std::span<const MicroBatch> micro_batches, const PassInput& input,
                     const Take& take) const {
  const at::NoGradGuard no_graph;
  return run(micro_batches, input, take);
}

Status Passes::run(std::span<const MicroBatch> micro_batches, const PassInput& input,
                   const Take& take) const {
  for (const MicroBatch& rows : micro_batches) {
    const PackedBatch packed = rows.idle() ? PackedBatch() : input.pack(rows);
    if (is_idle(packed, input.wanted)) {
      const Status ended = model_.idle_pass(c10::GradMode::is_enabled());
      if (!ended.ok()) return ended;
      continue;
    }
    const Result<Outputs> outputs = model_.outputs(packed, input.wanted, options_);
    if (!outputs.ok()) return outputs.status();
    if (const Status taken = take(*outputs, rows, packed); !taken.ok()) return taken;
    const Status ended = guarded<void>("end of a pass", [&] { model_.end_pass(); });
    if (!ended.ok()) return ended;
  }
  return {};
}

Status backward(const at::Tensor& loss) {
  return guarded<void>("backward pass", [&] { loss.backward(); });
}

}  // namespace rl
