#include "rl/model/quantized_weights.h"

#include <algorithm>
#include <functional>
#include <new>
#include <set>
#include <string>

#include "rl/model/family.h"
#include "rl/model/model_plan.h"

namespace rl {
namespace {

// Matrices that are no layers to multiply with, or none to round.
std::set<ParameterIndex> left_alone(const ModelPlan& plan) {
  std::set<ParameterIndex> indices{plan.positions};
  if (plan.lm_head.weight != plan.embedding) indices.insert(plan.embedding);
  for (const LayerPlan& layer : plan.layers) {
    if (layer.experts) indices.insert(layer.experts->router.weight);
  }
  for (const HeadPlan& head : plan.heads) {
    for (std::int64_t i = 0; i < head.count; ++i) indices.insert(head.first + i);
  }
  return indices;
}

}  // namespace

runtime::Result<std::unique_ptr<QuantizedWeights>> QuantizedWeights::create(
    const ModelConfig& config, const Parameters& parameters) {
  if (!parameters.arena().device().is_cpu())
    return runtime::invalid_argument(
        "8-bit weights: the model is on another device; they are for the CPU");
  const ModelPlan plan = plan_of(config);
  const std::set<ParameterIndex> alone = left_alone(plan);
  auto weights = std::make_unique<QuantizedWeights>();
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    const FamilyParameter& parameter = plan.parameters[i];
    if (parameter.shape.size() != 2 || parameter.frozen ||
        alone.contains(static_cast<ParameterIndex>(i)))
      continue;
    const std::int64_t out = parameter.shape[0], in = parameter.shape[1];
    weights->layers_.push_back({.weight = parameters.data(parameter.name),
                                .out = out,
                                .in = in,
                                .values = weights->values_bytes_,
                                .scales = weights->scales_count_});
    weights->values_bytes_ += out * kernel::int8_stride(in);
    weights->scales_count_ += out * kernel::int8_groups(in);
  }
  std::sort(weights->layers_.begin(), weights->layers_.end(),
            [](const Layer& a, const Layer& b) { return std::less<>()(a.weight, b.weight); });
  // Not set to zero: that would be a pass over memory for nothing.
  weights->values_.reset(new (std::nothrow)
                             std::int8_t[static_cast<std::size_t>(weights->values_bytes_)]);
  weights->scales_.reset(
      new (std::nothrow) float[static_cast<std::size_t>(weights->scales_count_)]);
  if (!weights->values_ || !weights->scales_) {
    return runtime::resource_exhausted("8-bit weights: no memory for a copy of " +
                                       std::to_string(weights->bytes() >> 20) + " MiB");
  }
  return weights;
}

void QuantizedWeights::refresh(kernel::ThreadPool& pool) {
  for (const Layer& layer : layers_) {
    kernel::quantize_int8(pool, layer.weight, layer.out, layer.in, values_.get() + layer.values,
                          scales_.get() + layer.scales);
  }
}

kernel::Int8Weight QuantizedWeights::find(const float* weight, std::int64_t rows,
                                          std::int64_t in) const {
  const auto after = std::upper_bound(
      layers_.begin(), layers_.end(), weight,
      [](const float* w, const Layer& layer) { return std::less<>()(w, layer.weight); });
  if (after == layers_.begin()) return {};
  const Layer& layer = *std::prev(after);
  if (!std::less<>()(weight, layer.weight + layer.out * layer.in))
    return {};  // of another arena, or of none of these
  const std::int64_t element = weight - layer.weight;
  const std::int64_t row = element / in;
  if (in != layer.in || element % in != 0 || row + rows > layer.out) return {};
  return kernel::Int8Weight{values_.get() + layer.values, scales_.get() + layer.scales}.from(row,
                                                                                             in);
}

}  // namespace rl
