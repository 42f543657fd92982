// A model's weights bound to the parts that they play: views of the arenas, of a team's ranks their
// own parts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rl/mesh/column_cut.h"
#include "rl/mesh/range_set.h"
#include "rl/model/gradient_arena.h"
#include "rl/model/model_config.h"
#include "rl/model/model_plan.h"
#include "rl/model/ops.h"
#include "rl/model/parameters.h"
#include "rl/model/tensor_cuts.h"

namespace rl {

class DropoutPasses;
class LoraAdapter;
class PassTeam;

/// What stands next to the model's own weights.
struct BoundAdapter {
  const LoraAdapter& lora;
  GradientArena* gradients = nullptr;  // of its layout; null: frozen
  DropoutPasses* passes = nullptr;     // gives those that drop; null: nothing is dropped
};

namespace bound {

using ops::Linear;
using ops::Norm;
using ops::Weight;

/// An adapter next to a linear layer, if `a` is defined.
struct LinearAdapter {
  Linear a, b;
  float scale = 0;
  double dropout = 0;
  std::uint32_t module = 0;  // which of the adapter's

  bool exists() const { return a.weight.value.defined(); }
};

/// Linear layers of one input.
struct Projection {
  std::vector<Linear> bases;
  std::vector<LinearAdapter> adapters;  // of each base, or empty: none has one

  bool adapted() const { return !adapters.empty(); }
  bool shared() const { return bases.front().cut != nullptr; }  // by a team
};

struct Attention {
  Projection qkv, o;
  Norm q_norm, k_norm;
  Projection down, q_up,
      kv_up;  // latent: queries (or what they come from) and what keys and values come from
  Norm q_down_norm, kv_down_norm;
};

struct Mlp {
  Projection in, down;  // gate and up, or up alone
};

struct Experts {
  Linear router;
  at::Tensor correction;
  std::vector<Mlp> experts;
  std::optional<Mlp> shared;
};

struct Layer {
  Norm attention_norm, attention_norm_after;
  Attention attention;
  Norm mlp_norm, mlp_norm_after;
  Mlp mlp;
  std::optional<Experts> experts;
};
inline bool exists(const Projection& projection) { return !projection.bases.empty(); }
inline bool exists(const Norm& norm) { return norm.weight.value.defined(); }

}  // namespace bound

/// Turns what a plan names into views of the arenas. Borrows everything it is given.
class WeightBinder {
 public:
  /// `trained`: what of the weights has gradients here; null: all.
  WeightBinder(const ModelConfig& config, const ModelPlan& plan, const Parameters& values,
               GradientArena* gradients, const std::optional<BoundAdapter>& adapter,
               const PassTeam* team, const RangeSet* trained);

  bound::Weight weight(ParameterIndex index) const { return weight(index, {}, {}); }
  bound::Linear linear(const LinearPlan& plan) const;
  /// A table of the vocabulary, and how it is cut.
  std::pair<bound::Weight, std::shared_ptr<const ColumnCut>> vocabulary(ParameterIndex table) const;
  /// Of the layers that there are.
  bound::Projection projection(std::initializer_list<LinearPlan> plans) const;
  bound::Norm norm(const NormPlan& plan) const;
  bound::Layer layer(const LayerPlan& plan) const;

 private:
  // Rows of a parameter; a negative number of them: all.
  struct Part {
    std::int64_t first = 0;
    std::int64_t rows = -1;

    at::Tensor of(const at::Tensor& whole) const {
      return rows < 0 ? whole : whole.narrow(0, first, rows);
    }
  };

  // The rows that are read, and those whose gradients the rank adds.
  bound::Weight weight(ParameterIndex index, const Part& read, const Part& added) const;
  bool is_trained(ParameterIndex index) const;
  bound::Norm rms_norm(const NormPlan& plan, float eps) const;
  bound::Mlp mlp(const MlpPlan& plan) const;
  bound::Attention attention(const AttentionPlan& plan) const;
  bound::Experts experts(const ExpertsPlan& plan) const;
  bound::LinearAdapter adapter(const LinearPlan& plan) const;

  const ModelConfig& config_;
  const ModelPlan& plan_;
  const Parameters& values_;
  GradientArena* gradients_;
  const std::optional<BoundAdapter>& adapter_;
  const RangeSet* trained_;
  std::optional<TensorCuts> cuts_;
  int rank_ = 0;
  bool by_rows_ = false;
};

}  // namespace rl
