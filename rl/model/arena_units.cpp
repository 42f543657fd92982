#include "rl/model/arena_units.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "rl/model/family.h"
#include "rl/model/model_plan.h"
#include "runtime/core/check.h"

namespace rl {

namespace {

// Writes down the unit of each parameter that a part of the plan names.
class UnitMarks {
 public:
  UnitMarks(std::size_t parameters, int unit_of_others) : unit_of_(parameters, unit_of_others) {}

  void mark(ParameterIndex parameter, int unit) {
    if (parameter != kNoParameter) unit_of_[static_cast<std::size_t>(parameter)] = unit;
  }
  void mark(const LinearPlan& linear, int unit) {
    mark(linear.weight, unit);
    mark(linear.bias, unit);
  }
  void mark(const NormPlan& norm, int unit) {
    mark(norm.weight, unit);
    mark(norm.bias, unit);
  }
  void mark(const MlpPlan& mlp, int unit) {
    for (const LinearPlan* linear : {&mlp.gate, &mlp.up, &mlp.down}) mark(*linear, unit);
  }
  void mark(const AttentionPlan& attention, int unit) {
    for (const LinearPlan* linear : {&attention.q, &attention.k, &attention.v, &attention.o,
                                     &attention.q_down, &attention.kv_down, &attention.kv_up})
      mark(*linear, unit);
    for (const NormPlan* norm :
         {&attention.q_norm, &attention.k_norm, &attention.q_down_norm, &attention.kv_down_norm})
      mark(*norm, unit);
  }
  void mark(const ExpertsPlan& experts, int unit) {
    mark(experts.router, unit);
    mark(experts.correction, unit);
    for (const MlpPlan& expert : experts.experts) mark(expert, unit);
    if (experts.shared) mark(*experts.shared, unit);
  }
  void mark(const LayerPlan& layer, int unit) {
    for (const NormPlan* norm : {&layer.attention_norm, &layer.attention_norm_after,
                                 &layer.mlp_norm, &layer.mlp_norm_after})
      mark(*norm, unit);
    mark(layer.attention, unit);
    mark(layer.mlp, unit);
    if (layer.experts) mark(*layer.experts, unit);
  }

  int unit_of(std::size_t parameter) const { return unit_of_[parameter]; }

 private:
  std::vector<int> unit_of_;
};

UnitMarks marks_of(const ModelPlan& plan) {
  UnitMarks marks(plan.parameters.size(), static_cast<int>(plan.layers.size()) + 1);
  for (std::size_t layer = 0; layer < plan.layers.size(); ++layer)
    marks.mark(plan.layers[layer], static_cast<int>(layer) + 1);
  marks.mark(plan.embedding, 0);
  marks.mark(plan.positions, 0);
  marks.mark(plan.project_in, 0);
  return marks;
}

}  // namespace

std::vector<ArenaUnit> arena_units(const ModelConfig& config,
                                   std::span<const ParameterSpec> specs) {
  const ModelPlan plan = plan_of(config);
  CHECK(plan.parameters.size() == specs.size());
  const UnitMarks marks = marks_of(plan);
  std::vector<std::vector<ArenaRange>> own(plan.layers.size() + 2);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::int64_t end = i + 1 < specs.size() ? specs[i + 1].offset : arena_elements(specs);
    own[static_cast<std::size_t>(marks.unit_of(i))].push_back({specs[i].offset, end});
  }
  std::vector<ArenaUnit> units;
  for (std::vector<ArenaRange>& ranges : own) {
    const RangeSet set(std::move(ranges));
    units.push_back({"layer " + std::to_string(std::ssize(units) - 1), set, set});
  }
  units.front().name = "the embeddings";
  units.back().name = "the output layer";
  if (plan.lm_head && plan.lm_head.weight == plan.embedding) {
    const ParameterSpec& tied = specs[static_cast<std::size_t>(plan.embedding)];
    units.back().read =
        units.back().own.united({ArenaRange{tied.offset, tied.offset + tied.count}});
  }
  return units;
}

}  // namespace rl
