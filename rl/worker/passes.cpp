#include "rl/worker/passes.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/GradMode.h>

#include "rl/model/guarded.h"
#include "rl/model/pass_team.h"
#include "rl/worker/joint_pass.h"
#include "rl/worker/shared_pass.h"
#include "rl/worker/streamed_passes.h"

namespace rl {

using runtime::Result;
using runtime::Status;

Status Passes::learn(std::span<const MicroBatch> micro_batches, const PassInput& input,
                     const PassLoss& loss, Metrics& metrics, int turn) const {
  if (const Status possible = check_shared(input.wanted); !possible.ok()) return possible;
  if (turn == kTogether) return learn_together(micro_batches, input, loss, metrics);
  // What of_logits learns of a tied table is not added in the order that a stream needs.
  const bool in_turn = input.wanted.of_logits && model_.has_tied_stages();
  if (model_.stream() != nullptr && micro_batches.size() > 1 && !in_turn)
    return StreamedPasses(model_, options_, turn).learn(micro_batches, input, loss, metrics);
  const SharedPass shared(model_, turn);
  return run(
      micro_batches, input.wanted,
      [&](const MicroBatch& rows) { return shared.packed(rows, input); },
      [&](const Outputs& outputs, const MicroBatch& rows, const PackedBatch& packed) {
        return shared.backward(
            outputs, [&](const Outputs& own) { return loss(own, rows, packed, metrics); });
      });
}

Status Passes::learn_together(std::span<const MicroBatch> micro_batches, const PassInput& input,
                              const PassLoss& loss, Metrics& metrics) const {
  JointPass joint(model_);
  return run(
      micro_batches, input.wanted,
      [&](const MicroBatch& rows) { return joint.packed(rows, input); },
      [&](const Outputs& outputs, const MicroBatch& rows, const PackedBatch&) {
        return joint.backward(
            outputs, [&](const Outputs& own) { return loss(own, rows, joint.own(), metrics); });
      });
}

Status Passes::score(std::span<const MicroBatch> micro_batches, const PassInput& input,
                     const Take& take) const {
  if (const Status possible = check_shared(input.wanted); !possible.ok()) return possible;
  const at::NoGradGuard no_graph;
  const int turns = model_.team() == nullptr ? 1 : model_.team()->size();
  for (int turn = 0; turn < turns; ++turn) {
    const SharedPass shared(model_, turn);
    const Status scored = run(
        micro_batches, input.wanted,
        [&](const MicroBatch& rows) { return shared.packed(rows, input); },
        [&](const Outputs& outputs, const MicroBatch& rows, const PackedBatch& packed) -> Status {
          return shared.is_own() ? take(outputs, rows, packed) : Status();
        });
    if (!scored.ok()) return scored;
  }
  return {};
}

Status Passes::check_shared(const OutputOptions& wanted) const {
  if (model_.team() == nullptr || !wanted.states) return {};
  return runtime::invalid_argument("states of a shared pass: its output layer is on all ranks");
}

Status Passes::run(std::span<const MicroBatch> micro_batches, const OutputOptions& wanted,
                   const Pack& pack, const Take& take) const {
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    const MicroBatch& rows = micro_batches[i];
    const Result<PackedBatch> packed = pack(rows);
    if (!packed.ok()) return packed.status();
    model_.begin_pass(/*another_follows=*/i + 1 < micro_batches.size());
    if (packed->ids.empty()) {
      const Status ended = model_.idle_pass(c10::GradMode::is_enabled());
      if (!ended.ok()) return ended;
      continue;
    }
    const Result<Outputs> outputs = model_.outputs(*packed, wanted, options_);
    if (!outputs.ok()) return outputs.status();
    if (const Status taken = take(*outputs, rows, *packed); !taken.ok()) return taken;
    const Status ended = guarded<void>("end of a pass", [&] { model_.end_pass(); });
    if (!ended.ok()) return ended;
  }
  return {};
}

}  // namespace rl
