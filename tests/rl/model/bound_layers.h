// Weights that a test binds by hand, frozen or trained.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rl/model/bound_weights.h"
#include "rl/model/gradient_arena.h"
#include "rl/model/parameters.h"

namespace rl::testing {

inline ops::Weight frozen(at::Tensor value) { return {std::move(value), {}, nullptr}; }

inline ops::Linear frozen_linear(at::Tensor weight) {
  return {.weight = frozen(std::move(weight)), .bias = {}};
}

/// Linear layers of one input.
inline bound::Projection frozen_projection(const std::vector<at::Tensor>& weights) {
  bound::Projection layers;
  for (const at::Tensor& weight : weights) layers.bases.push_back(frozen_linear(weight));
  return layers;
}

inline ops::Norm frozen_rms(at::Tensor weight) {
  return {.kind = NormKind::kRms, .eps = 1e-6F, .weight = frozen(std::move(weight)), .bias = {}};
}

/// Weights whose gradients begin as numbers of another sum.
class TrainedWeights {
 public:
  using Values = std::vector<std::pair<std::string, at::Tensor>>;

  explicit TrainedWeights(Values values)
      : values_(std::move(values)), gradients_(Parameters::zeros(layout(values_))) {
    for (const auto& [name, value] : values_) (*this)[name];
    gradients_.memory().arena().fill_(7.0);
    gradients_.overwritten();
    gradients_.forget();
  }

  ops::Weight operator[](const std::string& name) {
    for (const auto& [known, value] : values_) {
      if (known != name) continue;
      const at::Tensor grad = gradients_.memory().view(name);
      return {value, grad, gradients_.sum_of(grad)};
    }
    return {};
  }
  at::Tensor gradient(const std::string& name) { return gradients_.settled().view(name); }

  /// The same values as leaves of a graph, for a reference.
  Values leaves() const {
    Values copies;
    for (const auto& [name, value] : values_)
      copies.emplace_back(name, value.clone().set_requires_grad(true));
    return copies;
  }

 private:
  static std::vector<ParameterSpec> layout(const Values& values) {
    std::vector<FamilyParameter> parameters;
    for (const auto& [name, value] : values)
      parameters.push_back({.name = name, .shape = value.sizes().vec()});
    return arena_layout(std::move(parameters));
  }

  const Values values_;
  GradientArena gradients_;
};

}  // namespace rl::testing
