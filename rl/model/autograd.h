// The seam to autograd: operations whose forward and backward we write ourselves. Only autograd.cpp
// includes its headers.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

namespace rl::autograd {

/// Receives the gradient of each output (undefined where nothing depends on it) and returns that of
/// each input (undefined for none). Runs once, without a graph. It must capture no output that has
/// a graph: use detach().
using Backward =
    std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& output_grads)>;

/// Whether an operation on `inputs` has to remember how to go back: gradients are on and one of
/// them requires one.
bool needed(std::initializer_list<at::Tensor> inputs);

/// Makes freshly computed `outputs` depend on `inputs` through `backward`, which profiles call
/// `name`; call it only when needed(inputs).
void connect(const char* name, std::span<at::Tensor> outputs,
             std::initializer_list<at::Tensor> inputs, Backward backward);
void connect(const char* name, at::Tensor& output, std::initializer_list<at::Tensor> inputs,
             Backward backward);

/// compute(x) without what its backward needs, which computes it again: the same gradients, also
/// those that operations inside add elsewhere. `compute` must give the same bits each time.
at::Tensor recomputed(const at::Tensor& x, std::function<at::Tensor(const at::Tensor&)> compute);

/// x, with `call` made before the gradient of x goes on: when all that was computed from it has
/// gone back. x alone where no graph is built.
at::Tensor before_backward(const at::Tensor& x, std::function<void()> call);

/// Goes back from several outputs of one graph at once, each with its gradient.
void backward(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& gradients);

/// A leaf that requires a gradient and never gets one: the input of an operation that only
/// parameters feed.
at::Tensor anchor();

}  // namespace rl::autograd
