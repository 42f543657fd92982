#include "rl/model/address_plan.h"

#include <array>
#include <cstddef>
#include <utility>

#include "rl/mesh/deal.h"

namespace rl {
namespace {

// Writes down the pieces of each part; what no part names is left to the end, uncut.
class Cutter {
 public:
  Cutter(const ModelConfig& config, const ModelPlan& plan)
      : plan_(plan), blocks_(tensor_blocks(config)), placed_(plan.parameters.size(), false) {}

  std::vector<Piece> take() { return std::move(pieces_); }

  void whole(ParameterIndex parameter, int unit, int expert = kUncut) {
    if (parameter == kNoParameter || placed_[index(parameter)]) return;
    add(parameter, all_of(parameter), unit, kUncut, expert);
  }

  void whole(const LinearPlan& linear, int unit, int expert = kUncut) {
    if (!linear) return;
    add(linear.weight, rows_of(linear.weight, linear.first, linear.rows), unit, kUncut, expert);
    if (linear.bias != kNoParameter)
      add(linear.bias, rows_of(linear.bias, linear.first, linear.rows), unit, kUncut, expert);
  }

  void whole(const NormPlan& norm, int unit) {
    whole(norm.weight, unit);
    whole(norm.bias, unit);
  }

  // Outputs by blocks, and the bias with them.
  void by_rows(const LinearPlan& linear, int unit) {
    if (!linear) return;
    for (const ParameterIndex parameter : {linear.weight, linear.bias}) {
      if (parameter == kNoParameter) continue;
      for (int block = 0; block < blocks_; ++block) {
        const auto rows = deal<std::int64_t>(linear.rows, blocks_, block);
        add(parameter, rows_of(parameter, linear.first + rows.begin, rows.size()), unit, block,
            kUncut);
      }
    }
  }

  // Inputs by blocks. Their products are summed, and the bias is added once.
  void by_columns(const LinearPlan& linear, int unit) {
    if (!linear) return;
    const Rectangle rows = rows_of(linear.weight, linear.first, linear.rows);
    for (int block = 0; block < blocks_; ++block) {
      const auto columns = deal<std::int64_t>(rows.columns, blocks_, block);
      Rectangle part = rows;
      part.first_column = columns.begin;
      part.columns = columns.size();
      add(linear.weight, part, unit, block, kUncut);
    }
    if (linear.bias != kNoParameter)
      add(linear.bias, rows_of(linear.bias, linear.first, linear.rows), unit, kUncut, kUncut);
  }

  void mlp(const MlpPlan& mlp, int unit) {
    by_rows(mlp.gate, unit);
    by_rows(mlp.up, unit);
    by_columns(mlp.down, unit);
  }

  void expert(const MlpPlan& mlp, int unit, int expert) {
    for (const LinearPlan* linear : {&mlp.gate, &mlp.up, &mlp.down}) whole(*linear, unit, expert);
  }

 private:
  static std::size_t index(ParameterIndex parameter) { return static_cast<std::size_t>(parameter); }

  Rectangle all_of(ParameterIndex parameter) const {
    const std::vector<std::int64_t>& shape = plan_.parameters[index(parameter)].shape;
    Rectangle all{.rows = shape.empty() ? 1 : shape.front(), .columns = 1};
    for (std::size_t axis = 1; axis < shape.size(); ++axis) all.columns *= shape[axis];
    return all;
  }

  Rectangle rows_of(ParameterIndex parameter, std::int64_t first, std::int64_t rows) const {
    Rectangle part = all_of(parameter);
    part.first_row = first;
    part.rows = rows;
    return part;
  }

  void add(ParameterIndex parameter, const Rectangle& part, int unit, int block, int expert) {
    placed_[index(parameter)] = true;
    if (part.elements() == 0) return;
    pieces_.push_back(
        {.parameter = parameter, .part = part, .unit = unit, .block = block, .expert = expert});
  }

  const ModelPlan& plan_;
  const int blocks_;
  std::vector<bool> placed_;
  std::vector<Piece> pieces_;
};

void cut_attention(Cutter& cutter, const AttentionPlan& attention, int unit) {
  for (const NormPlan* norm :
       {&attention.q_norm, &attention.k_norm, &attention.q_down_norm, &attention.kv_down_norm})
    cutter.whole(*norm, unit);
  cutter.whole(attention.q_down, unit);
  cutter.whole(attention.kv_down, unit);
  for (const LinearPlan* linear : {&attention.q, &attention.k, &attention.v, &attention.kv_up})
    cutter.by_rows(*linear, unit);
  cutter.by_columns(attention.o, unit);
}

void cut_layer(Cutter& cutter, const LayerPlan& layer, int unit) {
  for (const NormPlan* norm :
       {&layer.attention_norm, &layer.attention_norm_after, &layer.mlp_norm, &layer.mlp_norm_after})
    cutter.whole(*norm, unit);
  cut_attention(cutter, layer.attention, unit);
  if (!layer.experts) return cutter.mlp(layer.mlp, unit);
  cutter.whole(layer.experts->router, unit);
  cutter.whole(layer.experts->correction, unit);
  if (layer.experts->shared) cutter.mlp(*layer.experts->shared, unit);
  for (std::size_t i = 0; i < layer.experts->experts.size(); ++i)
    cutter.expert(layer.experts->experts[i], unit, static_cast<int>(i));
}

}  // namespace

int tensor_blocks(const ModelConfig& config) {
  for (const int blocks : std::array{8, 4, 2, 3, 5, 7})
    if (config.kv_heads % blocks == 0) return blocks;
  return 1;
}

ModelUnits model_units(const ModelConfig& config) {
  return {.first_layer = 1,
          .last_layer = 1 + static_cast<int>(config.layers),
          .tied = config.tie_word_embeddings};
}

AddressSpace address_space(const ModelConfig& config, const ModelPlan& plan) {
  Cutter cutter(config, plan);
  const int last = 1 + static_cast<int>(plan.layers.size());
  const auto rows = static_cast<std::int64_t>(config.vocab_size);
  if (plan.embedding != kNoParameter) cutter.by_rows({.weight = plan.embedding, .rows = rows}, 0);
  cutter.whole(plan.positions, 0);
  cutter.whole(plan.project_in, 0);
  for (std::size_t i = 0; i < plan.layers.size(); ++i)
    cut_layer(cutter, plan.layers[i], 1 + static_cast<int>(i));
  cutter.whole(plan.last_norm, last);
  cutter.whole(plan.project_out, last);
  if (plan.lm_head && plan.lm_head.weight != plan.embedding) cutter.by_rows(plan.lm_head, last);
  for (std::size_t i = 0; i < plan.parameters.size(); ++i)
    cutter.whole(static_cast<ParameterIndex>(i), last);  // heads, and what has no other part
  return AddressSpace(cutter.take(), last + 1, tensor_blocks(config));
}

}  // namespace rl
