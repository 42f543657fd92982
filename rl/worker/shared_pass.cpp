#include "rl/worker/shared_pass.h"

#include <ATen/ops/empty.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rl/model/autograd.h"
#include "rl/model/guarded.h"
#include "rl/model/pass_team.h"
#include "runtime/codec/codec.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

// Those that carry a graph, in the order of Outputs.
std::vector<at::Tensor*> with_graph(Outputs& outputs) {
  std::vector<at::Tensor*> found;
  const auto add = [&](at::Tensor& t) {
    if (t.defined() && t.requires_grad()) found.push_back(&t);
  };
  add(outputs.logprobs.logprobs_N);
  add(outputs.logprobs.entropy_N);
  for (at::Tensor& head : outputs.heads) add(head);
  add(outputs.states_NH);
  return found;
}

// One byte for each output, whether there is a gradient, and then the gradients.
std::vector<std::byte> encoded(const std::vector<at::Tensor>& gradients) {
  std::vector<std::byte> bytes;
  for (const at::Tensor& gradient : gradients)
    bytes.push_back(gradient.defined() ? std::byte{1} : std::byte{0});
  for (const at::Tensor& gradient : gradients) {
    if (!gradient.defined()) continue;
    const at::Tensor dense = gradient.contiguous();
    const auto* data = static_cast<const std::byte*>(dense.const_data_ptr());
    bytes.insert(bytes.end(), data, data + dense.nbytes());
  }
  return bytes;
}

// The gradients of these outputs; undefined where there is none.
Result<std::vector<at::Tensor>> decoded(std::span<const std::byte> bytes,
                                        const std::vector<at::Tensor>& outputs) {
  std::vector<at::Tensor> gradients(outputs.size());
  std::size_t next = outputs.size();
  for (std::size_t i = 0; i < outputs.size() && next <= bytes.size(); ++i) {
    if (bytes[i] == std::byte{0}) continue;
    gradients[i] = at::empty(outputs[i].sizes(), outputs[i].options().requires_grad(false));
    const std::size_t size = gradients[i].nbytes();
    if (bytes.size() - next < size) break;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(next), size,
                static_cast<std::byte*>(gradients[i].mutable_data_ptr()));
    next += size;
  }
  if (next != bytes.size())
    return runtime::internal_error("gradients of other outputs than this rank's pass has");
  return gradients;
}

}  // namespace

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
    if (is_own()) {
      runtime::Encoder encoder;
      runtime::Codec<PackedBatch>::encode(encoder, batch);
      runtime::Codec<DropoutPass>::encode(encoder, drops.next());
      bytes.resize(encoder.size());
      encoder.gather(bytes);
    }
    const std::vector<std::byte> told = model_.team()->from(turn_, bytes, "rows of a pass");
    if (is_own()) return batch;
    runtime::Decoder decoder(runtime::Buffer::copy_of(told));
    runtime::Codec<PackedBatch>::decode(decoder, batch);
    DropoutPass dropped;
    runtime::Codec<DropoutPass>::decode(decoder, dropped);
    drops.follow(dropped);
    if (const Status status = decoder.finish(); !status.ok()) return status;
    return batch;
  });
}

Status SharedPass::backward(
    const Outputs& outputs,
    const std::function<Result<at::Tensor>(const Outputs& own)>& loss) const {
  if (model_.team() != nullptr) {
    // An adapter is whole on each rank, and has the gradients of its own rows alone.
    const bool pauses = !is_own() && !model_.used_adapter().empty();
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

Status SharedPass::back_together(
    const Outputs& outputs,
    const std::function<Result<at::Tensor>(const Outputs& own)>& loss) const {
  Outputs own = outputs;
  std::vector<at::Tensor> there;
  for (at::Tensor* output : with_graph(own)) {
    there.push_back(*output);
    *output = output->detach().requires_grad_(true);
  }
  std::vector<std::byte> bytes;
  if (is_own()) {
    const std::vector<at::Tensor*> leaves = with_graph(own);
    const Result<at::Tensor> value = loss(own);
    if (!value.ok()) return value.status();
    if (value->defined()) {
      value->backward();
      std::vector<at::Tensor> gradients;
      for (const at::Tensor* leaf : leaves) gradients.push_back(leaf->grad());
      bytes = encoded(gradients);
    }
  }
  bytes = model_.team()->from(turn_, bytes, "gradients of a loss");
  if (bytes.empty()) return model_.idle_backward();
  const Result<std::vector<at::Tensor>> gradients = decoded(bytes, there);
  if (!gradients.ok()) return gradients.status();
  std::vector<at::Tensor> from, with;
  for (std::size_t i = 0; i < there.size(); ++i) {
    if (!(*gradients)[i].defined()) continue;
    from.push_back(there[i]);
    with.push_back((*gradients)[i]);
  }
  if (from.empty()) return model_.idle_backward();
  autograd::backward(from, with);
  return {};
}

Status backward(const at::Tensor& loss) {
  return guarded<void>("backward pass", [&] { loss.backward(); });
}

}  // namespace rl
