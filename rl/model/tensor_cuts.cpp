#include "rl/model/tensor_cuts.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace rl {

TensorCuts::TensorCuts(const ModelConfig& config, const ModelPlan& plan, int ranks, PassCut cut)
    : team_(ranks), cut_(cut), vocabulary_(config.vocab_size, 1, ranks) {
  if (plan.embedding != kNoParameter) add_rows(plan.embedding, 0, vocabulary_);
  if (plan.lm_head) add(plan.lm_head, vocabulary_);
  for (const LinearPlan* layer : {&plan.project_in, &plan.project_out}) add(*layer);
  for (const LayerPlan& layer : plan.layers) {
    const AttentionPlan& a = layer.attention;
    for (const LinearPlan* heads : {&a.q, &a.k, &a.v}) {
      if (config.latent || !*heads)
        add(*heads);
      else
        add(*heads, ColumnCut(config.kv_heads, heads->rows / config.kv_heads, ranks));
    }
    for (const LinearPlan* other : {&a.o, &a.q_down, &a.kv_down, &a.kv_up}) add(*other);
    const auto add_mlp = [&](const MlpPlan& mlp) {
      for (const LinearPlan* part : {&mlp.gate, &mlp.up, &mlp.down}) add(*part);
    };
    add_mlp(layer.mlp);
    if (!layer.experts) continue;
    const std::int64_t experts = std::ssize(layer.experts->experts);
    for (std::int64_t i = 0; i < experts; ++i)
      add_expert(layer.experts->experts[static_cast<std::size_t>(i)], i, experts);
    if (layer.experts->shared) add_mlp(*layer.experts->shared);
  }
}

void TensorCuts::add(const LinearPlan& layer) {
  if (layer) add(layer, ColumnCut(layer.rows, 1, team_));
}

void TensorCuts::add(const LinearPlan& layer, const ColumnCut& cut) {
  if (!layer) return;
  add_rows(layer.weight, layer.first, cut);
  if (layer.bias != kNoParameter) add_rows(layer.bias, layer.first, cut);
}

// Whole on the rank that it is dealt to.
void TensorCuts::add_expert(const MlpPlan& expert, std::int64_t index, std::int64_t experts) {
  expert_ = true;
  const ColumnCut dealt(experts, 1, team_);
  for (const LinearPlan* part : {&expert.gate, &expert.up, &expert.down}) {
    if (cut_ != PassCut::kRowsAndExperts) {
      add(*part);
      continue;
    }
    std::vector<std::int64_t> sizes;
    for (int rank = 0; rank < team_; ++rank) {
      const std::int64_t at = index - dealt.first(rank);
      sizes.push_back(at >= 0 && at < dealt.size(rank) ? part->rows : 0);
    }
    add(*part, ColumnCut::of_sizes(sizes));
  }
  expert_ = false;
}

void TensorCuts::add_rows(ParameterIndex parameter, std::int64_t first, const ColumnCut& cut) {
  if (!index_.emplace(std::pair(parameter, first), rows_.size()).second) return;  // a tied one
  const bool in_part = cut_ == PassCut::kOutputs || (expert_ && cut_ == PassCut::kRowsAndExperts);
  rows_.push_back({parameter, first, cut, in_part});
}

std::optional<ColumnCut> TensorCuts::of(const LinearPlan& layer) const {
  const auto found = index_.find({layer.weight, layer.first});
  if (found == index_.end()) return std::nullopt;
  return rows_[found->second].cut;
}

RangeSet TensorCuts::used(std::span<const ParameterSpec> specs, int rank) const {
  return ranges(specs, rank, /*with_whole=*/true, /*read=*/true);
}

RangeSet TensorCuts::differentiated(std::span<const ParameterSpec> specs, int rank) const {
  return ranges(specs, rank, /*with_whole=*/rank == 0, /*read=*/false);
}

RangeSet TensorCuts::ranges(std::span<const ParameterSpec> specs, int rank, bool with_whole,
                            bool read) const {
  std::vector<bool> is_cut(specs.size(), false);
  std::vector<ArenaRange> ranges;
  for (const Rows& rows : rows_) {
    if (read && !rows.read_in_part) continue;
    const ParameterSpec& spec = specs[static_cast<std::size_t>(rows.parameter)];
    is_cut[static_cast<std::size_t>(rows.parameter)] = true;
    const std::int64_t width = spec.count / spec.shape.front();
    const std::int64_t begin = spec.offset + (rows.first + rows.cut.first(rank)) * width;
    if (rows.cut.size(rank) > 0) ranges.push_back({begin, begin + rows.cut.size(rank) * width});
  }
  for (std::size_t i = 0; with_whole && i < specs.size(); ++i)
    if (!is_cut[i]) ranges.push_back({specs[i].offset, specs[i].offset + specs[i].count});
  return RangeSet(std::move(ranges));
}

runtime::Status check_sharing_ranks(const ModelConfig& config, int ranks, PassCut cut) {
  const std::int64_t experts = config.moe ? config.moe->experts : 0;
  if (cut == PassCut::kRowsAndExperts && ranks > experts) {
    return runtime::invalid_argument("the model has " +
                                     (experts == 0 ? std::string("no") : std::to_string(experts)) +
                                     " experts to be dealt to " + std::to_string(ranks) + " ranks");
  }
  if (ranks <= config.kv_heads) return {};
  return runtime::invalid_argument("the model has " + std::to_string(config.kv_heads) +
                                   " key heads, which cannot be dealt to " + std::to_string(ranks) +
                                   " ranks that share each pass");
}

}  // namespace rl
