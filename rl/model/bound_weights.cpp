#include "rl/model/bound_weights.h"

#include <string>

#include "rl/model/lora.h"
#include "rl/model/pass_team.h"

namespace rl {

using bound::Attention;
using bound::Experts;
using bound::Layer;
using bound::Linear;
using bound::LinearAdapter;
using bound::Mlp;
using bound::Norm;
using bound::Projection;
using bound::Weight;

namespace {

Weight with_sum(at::Tensor value, at::Tensor grad, GradientArena* gradients) {
  std::shared_ptr<GradientSum> sum;
  if (grad.defined()) sum = gradients->sum_of(grad);
  return {std::move(value), std::move(grad), std::move(sum)};
}

}  // namespace

WeightBinder::WeightBinder(const ModelConfig& config, const ModelPlan& plan,
                           const Parameters& values, GradientArena* gradients,
                           const std::optional<BoundAdapter>& adapter, const PassTeam* team,
                           const RangeSet* trained)
    : config_(config),
      plan_(plan),
      values_(values),
      gradients_(gradients),
      adapter_(adapter),
      trained_(trained) {
  if (team == nullptr) return;
  cuts_.emplace(config, plan, team->size(), team->cut());
  rank_ = team->rank();
  by_rows_ = cuts_rows(team->cut());
}

Linear WeightBinder::linear(const LinearPlan& plan) const {
  const Part all{plan.first, plan.rows};
  const std::optional<ColumnCut> cut = cuts_ && plan ? cuts_->of(plan) : std::nullopt;
  if (!cut) return {weight(plan.weight, all, all), weight(plan.bias, all, all)};
  const Part own{plan.first + cut->first(rank_), cut->size(rank_)};
  const Part& read = by_rows_ ? all : own;
  Linear layer{weight(plan.weight, read, own), weight(plan.bias, read, own)};
  (by_rows_ ? layer.dealt : layer.cut) = std::make_shared<const ColumnCut>(*cut);
  return layer;
}

std::pair<Weight, std::shared_ptr<const ColumnCut>> WeightBinder::vocabulary(
    ParameterIndex table) const {
  if (!cuts_) return {weight(table), nullptr};
  const ColumnCut& cut = cuts_->vocabulary();
  const Part own{cut.first(rank_), cut.size(rank_)};
  return {weight(table, by_rows_ ? Part{} : own, own), std::make_shared<const ColumnCut>(cut)};
}

Projection WeightBinder::projection(std::initializer_list<LinearPlan> plans) const {
  Projection projection;
  bool adapted = false;
  for (const LinearPlan& plan : plans) {
    if (!plan) continue;
    projection.bases.push_back(linear(plan));
    projection.adapters.push_back(adapter(plan));
    adapted = adapted || projection.adapters.back().exists();
  }
  if (!adapted) projection.adapters.clear();
  return projection;
}

LinearAdapter WeightBinder::adapter(const LinearPlan& plan) const {
  const LoraModule* module =
      adapter_
          ? adapter_->lora.module_of(plan_.parameters[static_cast<std::size_t>(plan.weight)].name)
          : nullptr;
  if (module == nullptr) return {};
  const auto grad = [&](const std::string& name) {
    return adapter_->gradients ? adapter_->gradients->memory().view(name) : at::Tensor();
  };
  const auto rows = [&](const at::Tensor& t) {
    return t.defined() ? t.narrow(0, plan.first, plan.rows) : t;
  };
  const auto weight = [&](const at::Tensor& value, const at::Tensor& gradient) {
    return with_sum(value, gradient, adapter_->gradients);
  };
  const Parameters& lora = adapter_->lora.parameters();
  return {.a = {weight(lora.view(module->a), grad(module->a)), {}},
          .b = {weight(rows(lora.view(module->b)), rows(grad(module->b))), {}},
          .scale = module->scale,
          .dropout = adapter_->lora.config().dropout,
          .module = static_cast<std::uint32_t>(module - adapter_->lora.modules().data())};
}

Norm WeightBinder::norm(const NormPlan& plan) const {
  return {config_.norm, config_.norm_eps, weight(plan.weight), weight(plan.bias)};
}

Norm WeightBinder::rms_norm(const NormPlan& plan, float eps) const {
  return {NormKind::kRms, eps, weight(plan.weight), {}};
}

Mlp WeightBinder::mlp(const MlpPlan& plan) const {
  return {projection({plan.gate, plan.up}), projection({plan.down})};
}

Attention WeightBinder::attention(const AttentionPlan& plan) const {
  Attention attention;
  if (plan.kv_down) {
    attention.down = projection({plan.q_down ? plan.q_down : plan.q, plan.kv_down});
    if (plan.q_down) attention.q_up = projection({plan.q});
    attention.kv_up = projection({plan.kv_up});
    attention.q_down_norm = rms_norm(plan.q_down_norm, LatentConfig::kNormEps);
    attention.kv_down_norm = rms_norm(plan.kv_down_norm, LatentConfig::kNormEps);
  } else {
    attention.qkv = projection({plan.q, plan.k, plan.v});
    attention.q_norm = rms_norm(plan.q_norm, config_.norm_eps);
    attention.k_norm = rms_norm(plan.k_norm, config_.norm_eps);
  }
  attention.o = projection({plan.o});
  return attention;
}

Experts WeightBinder::experts(const ExpertsPlan& plan) const {
  Experts experts{linear(plan.router), weight(plan.correction).value, {}, {}};
  for (const MlpPlan& expert : plan.experts) experts.experts.push_back(mlp(expert));
  if (plan.shared) experts.shared = mlp(*plan.shared);
  return experts;
}

Layer WeightBinder::layer(const LayerPlan& plan) const {
  Layer layer;
  layer.attention_norm = norm(plan.attention_norm);
  layer.attention_norm_after = norm(plan.attention_norm_after);
  layer.attention = attention(plan.attention);
  layer.mlp_norm = norm(plan.mlp_norm);
  layer.mlp_norm_after = norm(plan.mlp_norm_after);
  layer.mlp = mlp(plan.mlp);
  if (plan.experts) layer.experts = experts(*plan.experts);
  return layer;
}

Weight WeightBinder::weight(ParameterIndex index, const Part& read, const Part& added) const {
  if (index == kNoParameter) return {};
  const FamilyParameter& parameter = plan_.parameters[static_cast<std::size_t>(index)];
  const bool trained =
      gradients_ != nullptr && !parameter.frozen && added.rows != 0 && is_trained(index);
  return with_sum(read.of(values_.view(parameter.name)),
                  trained ? added.of(gradients_->memory().view(parameter.name)) : at::Tensor(),
                  gradients_);
}

bool WeightBinder::is_trained(ParameterIndex index) const {
  const ParameterSpec& spec = values_.specs()[static_cast<std::size_t>(index)];
  return trained_ == nullptr || trained_->contains({spec.offset, spec.offset + spec.count});
}

}  // namespace rl
