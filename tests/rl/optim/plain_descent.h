// Gradient descent without a state, as an optimizer whose steps are computed by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rl/optim/optimizer.h"

namespace rl::testing {

/// Subtracts the scaled gradient times the learning rate. `status` is what steps return.
class PlainDescent final : public Optimizer {
 public:
  runtime::Status step(kernel::ThreadPool& /*pool*/, std::span<float> parameters,
                       std::span<const float> gradients, float learning_rate,
                       float gradient_scale) override {
    elements = std::ssize(parameters);
    if (!status.ok()) return status;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      parameters[i] -= learning_rate * (gradient_scale * gradients[i]);
    ++steps_;
    return {};
  }
  std::vector<OptimizerState> state() override { return {}; }
  std::string_view name() const override { return "plain descent"; }

  runtime::Status status;
  std::int64_t elements = -1;  // of the last step
};

}  // namespace rl::testing
