#include "rl/worker/output_gradients.h"

#include "rl/model/autograd.h"
#include "rl/model/guarded.h"
#include "runtime/core/check.h"

namespace rl {

using runtime::Result;

std::vector<at::Tensor*> outputs_with_graph(Outputs& outputs) {
  std::vector<at::Tensor*> found;
  const auto add = [&](at::Tensor& t) {
    if (t.defined() && t.requires_grad()) found.push_back(&t);
  };
  add(outputs.logprobs.logprobs_N);
  add(outputs.logprobs.entropy_N);
  for (at::Tensor& head : outputs.heads) add(head);
  add(outputs.states_NH);
  add(outputs.of_logits_NK);
  return found;
}

Result<std::vector<at::Tensor>> output_gradients(const Outputs& outputs,
                                                 const LossOfOutputs& loss) {
  return guarded<std::vector<at::Tensor>>("a loss", [&]() -> Result<std::vector<at::Tensor>> {
    Outputs own = outputs;
    const std::vector<at::Tensor*> leaves = outputs_with_graph(own);
    for (at::Tensor* leaf : leaves) *leaf = leaf->detach().requires_grad_(true);
    const Result<at::Tensor> value = loss(own);
    if (!value.ok()) return value.status();
    std::vector<at::Tensor> gradients;
    if (!value->defined()) return gradients;
    value->backward();
    for (const at::Tensor* leaf : leaves) gradients.push_back(leaf->grad());
    return gradients;
  });
}

bool backward_from(Outputs outputs, const std::vector<at::Tensor>& gradients) {
  const std::vector<at::Tensor*> all = outputs_with_graph(outputs);
  CHECK(gradients.empty() || gradients.size() == all.size());
  std::vector<at::Tensor> from, with;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    from.push_back(*all[i]);
    with.push_back(gradients[i]);
  }
  if (from.empty()) return false;
  autograd::backward(from, with);
  return true;
}

}  // namespace rl
