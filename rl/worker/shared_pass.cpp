#include "rl/worker/shared_pass.h"

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rl/model/guarded.h"
#include "rl/model/pass_team.h"
#include "rl/model/tensor_list.h"
#include "rl/worker/adapter_leaves.h"
#include "rl/worker/value_bytes.h"

namespace rl {

using runtime::Result;
using runtime::Status;

// An idle pass computes nothing: its rank is only there for what the ranks of a pass do together.
PackedBatch pack_unless_idle(const MicroBatch& rows, const PassInput& input) {
  PackedBatch packed = rows.idle() ? PackedBatch() : input.pack(rows);
  return packed.targets.empty() && input.wanted.heads.empty() ? PackedBatch() : packed;
}

SharedPass::SharedPass(const Transformer& model, int turn) : model_(model), turn_(turn) {}

bool SharedPass::is_own() const {
  return model_.team() == nullptr || model_.team()->rank() == turn_;
}

Result<PackedBatch> SharedPass::packed(const std::function<PackedBatch()>& pack) const {
  if (model_.team() == nullptr) return pack();
  return guarded<PackedBatch>("the rows of a shared pass", [&]() -> Result<PackedBatch> {
    PackedBatch batch = is_own() ? pack() : PackedBatch();
    std::vector<std::byte> bytes;
    DropoutPasses& drops = model_.dropout_passes();
    drops.follow(std::nullopt);
    if (is_own()) bytes = encode_values(batch, drops.next());
    const std::vector<std::byte> told = model_.team()->from(turn_, bytes, "rows of a pass");
    if (is_own()) return batch;
    DropoutPass dropped;
    if (const Status status = decode_values(told, batch, dropped); !status.ok()) return status;
    drops.follow(dropped);
    return batch;
  });
}

Result<PackedBatch> SharedPass::packed(const MicroBatch& rows, const PassInput& input) const {
  return packed([&] { return pack_unless_idle(rows, input); });
}

Status SharedPass::backward(const Outputs& outputs, const LossOfOutputs& loss) const {
  if (model_.team() != nullptr) {
    const bool pauses = !model_.used_adapter().empty() && !adds_to_adapter(*model_.team(), turn_);
    GradientArena& gradients = model_.gradient_arena();
    gradients.pause(pauses);
    const Status status =
        guarded<void>("backward pass", [&] { return back_together(outputs, loss); });
    gradients.pause(false);
    return status;
  }
  const Result<at::Tensor> value = loss(outputs);
  if (!value.ok()) return value.status();
  return value->defined() ? rl::backward(*value) : model_.idle_backward();
}

Status SharedPass::back_together(const Outputs& outputs, const LossOfOutputs& loss) const {
  std::vector<std::byte> bytes;
  if (is_own()) {
    const Result<std::vector<at::Tensor>> own = output_gradients(outputs, loss);
    if (!own.ok()) return own.status();
    bytes = encode_tensors(*own);
  }
  const Result<std::vector<at::Tensor>> gradients =
      decode_tensors(model_.team()->from(turn_, bytes, "gradients of a loss"));
  if (!gradients.ok()) return gradients.status();
  return backward_from(outputs, *gradients) ? Status() : model_.idle_backward();
}

Status backward(const at::Tensor& loss) {
  return guarded<void>("backward pass", [&] { loss.backward(); });
}

}  // namespace rl
