// The gradients that a loss has for a pass's outputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "rl/model/transformer.h"
#include "runtime/core/result.h"

namespace rl {

/// The loss of some outputs; undefined: nothing is learned from them.
using LossOfOutputs = std::function<runtime::Result<at::Tensor>(const Outputs& outputs)>;

/// The outputs that carry a graph, or are leaves of one, in the order of Outputs.
std::vector<at::Tensor*> outputs_with_graph(Outputs& outputs);

/// Computes the loss of the outputs, cut off from their graph, and its gradient for each of
/// outputs_with_graph(); some may be undefined. Empty: nothing is learned. Errors: those of `loss`;
/// kResourceExhausted: out of memory.
runtime::Result<std::vector<at::Tensor>> output_gradients(const Outputs& outputs,
                                                          const LossOfOutputs& loss);

/// Goes back from outputs_with_graph() with those gradients. False: none of them has one.
bool backward_from(Outputs outputs, const std::vector<at::Tensor>& gradients);

}  // namespace rl
