#include "rl/model/autograd.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "rl/model/parallel.h"
#include "runtime/core/check.h"

namespace rl::autograd {
namespace {

// A node of the graph that runs a function. What the function captured is freed as soon as it ran.
class FunctionNode : public torch::autograd::Node {
 public:
  FunctionNode(const char* name, torch::autograd::edge_list edges, Backward backward)
      : Node(std::move(edges)), name_(name), backward_(std::move(backward)) {}

  std::string name() const override { return name_; }

  void release_variables() override { backward_ = nullptr; }

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    TORCH_CHECK(backward_, "backward ran twice through one forward pass");
    const SingleThreaded alone;  // what is worth sharing runs on the kernels' threads
    return backward_(grads);
  }

  const char* name_;
  Backward backward_;
};

}  // namespace

bool needed(std::initializer_list<at::Tensor> inputs) {
  return c10::GradMode::is_enabled() &&
         std::any_of(inputs.begin(), inputs.end(),
                     [](const at::Tensor& t) { return t.defined() && t.requires_grad(); });
}

void connect(const char* name, std::span<at::Tensor> outputs,
             std::initializer_list<at::Tensor> inputs, Backward backward) {
  torch::autograd::edge_list edges;
  for (const at::Tensor& input : inputs) {
    edges.push_back(input.requires_grad() ? torch::autograd::impl::gradient_edge(input)
                                          : torch::autograd::Edge());
  }
  auto node = std::shared_ptr<FunctionNode>(
      new FunctionNode(name, std::move(edges), std::move(backward)), torch::autograd::deleteNode);
  for (at::Tensor& output : outputs) {
    CHECK(!output.requires_grad());
    torch::autograd::set_history(output, node);
  }
}

void connect(const char* name, at::Tensor& output, std::initializer_list<at::Tensor> inputs,
             Backward backward) {
  connect(name, std::span(&output, 1), inputs, std::move(backward));
}

at::Tensor recomputed(const at::Tensor& x, std::function<at::Tensor(const at::Tensor&)> compute) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = compute(x);
  }
  if (!needed({x})) return y;
  connect("recomputed layer backward", y, {x},
          [kept = x.detach(), compute = std::move(compute)](const std::vector<at::Tensor>& grads) {
            c10::AutoGradMode on(true);
            const at::Tensor again = kept.detach().set_requires_grad(true);
            torch::autograd::backward({compute(again)}, {grads[0]});
            return std::vector<at::Tensor>{again.grad()};
          });
  return y;
}

at::Tensor before_backward(const at::Tensor& x, std::function<void()> call) {
  if (!needed({x})) return x;
  at::Tensor same = x.detach();
  connect("layer border", same, {x},
          [call = std::move(call)](const std::vector<at::Tensor>& grads) {
            call();
            return grads;
          });
  return same;
}

void backward(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& gradients) {
  torch::autograd::backward(outputs, gradients);
}

at::Tensor anchor() {
  at::Tensor leaf = at::empty({0});
  leaf.set_requires_grad(true);
  return leaf;
}

}  // namespace rl::autograd
