#include "rl/model/graph.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#include "rl/model/autograd.h"
#include "rl/model/dropout.h"
#include "rl/model/family.h"
#include "rl/model/head.h"
#include "rl/model/lora.h"
#include "rl/model/model_plan.h"
#include "rl/model/ops.h"
#include "rl/model/pass_team.h"
#include "rl/model/pipeline.h"
#include "rl/model/tensor_cuts.h"

namespace rl {

using ops::Linear;
using ops::Norm;
using ops::Weight;

namespace {

// An adapter beside a linear layer, if `a` is defined.
struct Beside {
  Linear a, b;
  float scale = 0;
  double dropout = 0;
  std::uint32_t module = 0;  // which of the adapter's

  bool exists() const { return a.weight.value.defined(); }
};

// Linear layers of one input.
struct Projection {
  std::vector<Linear> bases;
  std::vector<Beside> besides;  // of each base, or empty: none has one

  bool adapted() const { return !besides.empty(); }
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

bool exists(const Projection& projection) { return !projection.bases.empty(); }
bool exists(const Norm& norm) { return norm.weight.value.defined(); }

// Turns what a plan names into views of the arenas.
class Binder {
 public:
  /// `trained`: what of the weights has gradients here; null: all.
  Binder(const ModelConfig& config, const ModelPlan& plan, const Parameters& values,
         GradientArena* gradients, const std::optional<Graph::Adapter>& adapter,
         const PassTeam* team, const RangeSet* trained)
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

  Weight weight(ParameterIndex index) const { return weight(index, {}, {}); }
  Linear linear(const LinearPlan& plan) const {
    const Part all{plan.first, plan.rows};
    const std::optional<ColumnCut> cut = cuts_ && plan ? cuts_->of(plan) : std::nullopt;
    if (!cut) return {weight(plan.weight, all, all), weight(plan.bias, all, all)};
    const Part own{plan.first + cut->first(rank_), cut->size(rank_)};
    const Part& read = by_rows_ ? all : own;
    Linear layer{weight(plan.weight, read, own), weight(plan.bias, read, own)};
    (by_rows_ ? layer.dealt : layer.cut) = std::make_shared<const ColumnCut>(*cut);
    return layer;
  }
  // A table of the vocabulary, and how it is cut.
  std::pair<Weight, std::shared_ptr<const ColumnCut>> vocabulary(ParameterIndex table) const {
    if (!cuts_) return {weight(table), nullptr};
    const ColumnCut& cut = cuts_->vocabulary();
    const Part own{cut.first(rank_), cut.size(rank_)};
    return {weight(table, by_rows_ ? Part{} : own, own), std::make_shared<const ColumnCut>(cut)};
  }
  // Of the layers that there are.
  Projection projection(std::initializer_list<LinearPlan> plans) const {
    Projection projection;
    bool adapted = false;
    for (const LinearPlan& plan : plans) {
      if (!plan) continue;
      projection.bases.push_back(linear(plan));
      projection.besides.push_back(beside(plan));
      adapted = adapted || projection.besides.back().exists();
    }
    if (!adapted) projection.besides.clear();
    return projection;
  }
  Beside beside(const LinearPlan& plan) const {
    const LoraModule* module =
        adapter_
            ? adapter_->lora.beside(plan_.parameters[static_cast<std::size_t>(plan.weight)].name)
            : nullptr;
    if (module == nullptr) return {};
    const auto grad = [&](const std::string& name) {
      return adapter_->gradients ? adapter_->gradients->memory().view(name) : at::Tensor();
    };
    const auto rows = [&](const at::Tensor& t) {
      return t.defined() ? t.narrow(0, plan.first, plan.rows) : t;
    };
    const auto weight = [&](const at::Tensor& value, const at::Tensor& gradient) {
      return bound(value, gradient, adapter_->gradients);
    };
    const Parameters& lora = adapter_->lora.parameters();
    return {.a = {weight(lora.view(module->a), grad(module->a)), {}},
            .b = {weight(rows(lora.view(module->b)), rows(grad(module->b))), {}},
            .scale = module->scale,
            .dropout = adapter_->lora.config().dropout,
            .module = static_cast<std::uint32_t>(module - adapter_->lora.modules().data())};
  }
  Norm norm(const NormPlan& plan) const {
    return {config_.norm, config_.norm_eps, weight(plan.weight), weight(plan.bias)};
  }
  Norm rms_norm(const NormPlan& plan, float eps) const {
    return {NormKind::kRms, eps, weight(plan.weight), {}};
  }
  Mlp mlp(const MlpPlan& plan) const {
    return {projection({plan.gate, plan.up}), projection({plan.down})};
  }

  Layer layer(const LayerPlan& plan) const {
    Layer layer;
    layer.attention_norm = norm(plan.attention_norm);
    layer.attention_norm_after = norm(plan.attention_norm_after);
    const AttentionPlan& a = plan.attention;
    if (a.kv_down) {
      layer.attention.down = projection({a.q_down ? a.q_down : a.q, a.kv_down});
      if (a.q_down) layer.attention.q_up = projection({a.q});
      layer.attention.kv_up = projection({a.kv_up});
      layer.attention.q_down_norm = rms_norm(a.q_down_norm, LatentConfig::kNormEps);
      layer.attention.kv_down_norm = rms_norm(a.kv_down_norm, LatentConfig::kNormEps);
    } else {
      layer.attention.qkv = projection({a.q, a.k, a.v});
      layer.attention.q_norm = rms_norm(a.q_norm, config_.norm_eps);
      layer.attention.k_norm = rms_norm(a.k_norm, config_.norm_eps);
    }
    layer.attention.o = projection({a.o});
    layer.mlp_norm = norm(plan.mlp_norm);
    layer.mlp_norm_after = norm(plan.mlp_norm_after);
    layer.mlp = mlp(plan.mlp);
    if (plan.experts) {
      Experts experts{linear(plan.experts->router), weight(plan.experts->correction).value, {}, {}};
      for (const MlpPlan& expert : plan.experts->experts) experts.experts.push_back(mlp(expert));
      if (plan.experts->shared) experts.shared = mlp(*plan.experts->shared);
      layer.experts = std::move(experts);
    }
    return layer;
  }

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
  Weight weight(ParameterIndex index, const Part& read, const Part& added) const {
    if (index == kNoParameter) return {};
    const FamilyParameter& parameter = plan_.parameters[static_cast<std::size_t>(index)];
    const bool trained =
        gradients_ != nullptr && !parameter.frozen && added.rows != 0 && is_trained(index);
    return bound(read.of(values_.view(parameter.name)),
                 trained ? added.of(gradients_->memory().view(parameter.name)) : at::Tensor(),
                 gradients_);
  }

  bool is_trained(ParameterIndex index) const {
    const ParameterSpec& spec = values_.specs()[static_cast<std::size_t>(index)];
    return trained_ == nullptr || trained_->contains({spec.offset, spec.offset + spec.count});
  }

  static Weight bound(at::Tensor value, at::Tensor grad, GradientArena* gradients) {
    std::shared_ptr<GradientSum> sum;
    if (grad.defined()) sum = gradients->sum_of(grad);
    return {std::move(value), std::move(grad), std::move(sum)};
  }

  const ModelConfig& config_;
  const ModelPlan& plan_;
  const Parameters& values_;
  GradientArena* gradients_;
  const std::optional<Graph::Adapter>& adapter_;
  const RangeSet* trained_;
  std::optional<TensorCuts> cuts_;
  int rank_ = 0;
  bool by_rows_ = false;
};

// Layers and what stands beside them.
class Projector {
 public:
  /// Adapters' inputs are dropped in a pass that trains, and in none without one. `rows`: of a
  /// team's that the rank has; null: all.
  Projector(const PassContext& pass, const std::optional<DropoutPass>& dropout,
            std::shared_ptr<const ColumnCut> rows)
      : pass_(pass), dropout_(dropout), rows_(std::move(rows)) {}

  // Whether anybody has a row, of `own` that the rank has.
  bool any(std::size_t own) const { return rows_ ? rows_->total() > 0 : own > 0; }

  // The same of other rows.
  Projector with(std::shared_ptr<const ColumnCut> rows) const {
    return {pass_, dropout_, std::move(rows)};
  }

  std::vector<at::Tensor> operator()(const at::Tensor& x, const Projection& layers) const {
    std::vector<at::Tensor> y = ops::linear(pass_, x, layers.bases, own_rows());
    for (std::size_t i = 0; i < layers.besides.size(); ++i) {
      if (layers.besides[i].exists()) y[i] = ops::add(pass_, y[i], beside(x, layers.besides[i]));
    }
    return y;
  }
  at::Tensor one(const at::Tensor& x, const Projection& layer) const {
    return (*this)(x, layer).front();
  }

  // The layers of a block's normed input.
  std::vector<at::Tensor> normed(const at::Tensor& x, const Norm& norm,
                                 const Projection& layers) const {
    if (!exists(norm)) return (*this)(x, layers);
    return layers.adapted() ? (*this)(ops::norm(pass_, x, norm, own_rows()), layers)
                            : ops::norm_linear(pass_, x, norm, layers.bases, own_rows());
  }

  // The same, of a team the rank's own columns.
  std::vector<at::Tensor> own(const at::Tensor& x, const Norm& norm,
                              const Projection& layers) const {
    if (!layers.shared()) return normed(x, norm, layers);
    if (!layers.adapted()) {
      const ops::Spread own{.own_outputs = true};
      return exists(norm) ? ops::norm_linear(pass_, x, norm, layers.bases, own)
                          : ops::linear(pass_, x, layers.bases, own);
    }
    std::vector<at::Tensor> y = normed(x, norm, layers);
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = ops::own_columns(pass_, y[i], *layers.bases[i].cut);
    return y;
  }

  // A layer of what a team's ranks have own columns of.
  at::Tensor joined(const at::Tensor& x, const std::shared_ptr<const ColumnCut>& in,
                    const Projection& layer) const {
    if (!in) return one(x, layer);
    return layer.adapted() ? one(ops::all_columns(pass_, x, *in), layer)
                           : ops::linear(pass_, x, layer.bases.front(), {.in = in});
  }

  // `in` is gate and up, or up alone, as own() gives them.
  at::Tensor activated(kernel::Activation activation, const std::vector<at::Tensor>& in,
                       const Mlp& mlp) const {
    const at::Tensor up = in.size() > 1 ? in[1] : at::Tensor();
    const std::shared_ptr<const ColumnCut>& cut = mlp.in.bases.front().cut;
    if (mlp.down.adapted())
      return joined(ops::activate(pass_, activation, in[0], up), cut, mlp.down);
    return ops::activate_linear(pass_, activation, in[0], up, mlp.down.bases.front(),
                                {.in = cut, .rows = rows_});
  }

 private:
  ops::Spread own_rows() const { return {.rows = rows_}; }
  std::int64_t first_row() const { return rows_ ? rows_->first(pass_.team->rank()) : 0; }

  at::Tensor beside(const at::Tensor& x, const Beside& layer) const {
    const bool drops = dropout_ && layer.dropout > 0 && layer.a.weight.trained();
    const at::Tensor in =
        drops ? dropped_out(pass_.pool, x, layer.dropout, *dropout_, layer.module, first_row()) : x;
    return ops::linear(pass_, ops::linear(pass_, in, layer.a, own_rows()), layer.b, own_rows()) *
           layer.scale;
  }

  const PassContext pass_;
  const std::optional<DropoutPass> dropout_;
  const std::shared_ptr<const ColumnCut> rows_;
};

// The heads whose attention a rank computes: all of them, or of a team the ranks' in turn.
struct Heads {
  std::int64_t own = 0;
  std::int64_t own_keys = 0;
  ColumnCut keys;  // of a team

  Heads(const ModelConfig& config, const PassTeam* team)
      : own(config.heads), own_keys(config.kv_heads) {
    if (team == nullptr) return;
    group_ = config.heads / config.kv_heads;
    keys = ColumnCut(config.kv_heads, 1, team->size());
    own_keys = keys.size(team->rank());
    own = own_keys * group_;
  }

  // Of what has so many columns for each head of queries; null: no team.
  std::shared_ptr<const ColumnCut> columns(std::int64_t width) const {
    if (keys.ranks() == 0) return nullptr;
    return std::make_shared<const ColumnCut>(keys.total(), group_ * width, keys.ranks());
  }

 private:
  std::int64_t group_ = 1;  // queries of a key head
};

// Which of the rows of a pass the rank computes, of a team that cuts rows; null: all of them.
std::shared_ptr<const ColumnCut> own_rows(const PassTeam* team, const forward::Rows& rows) {
  if (team == nullptr || !cuts_rows(team->cut())) return nullptr;
  return ops::rows_of_ranks(rows.count(), team->size());
}

// The rows that take each expert.
using Takers = std::vector<std::vector<std::int64_t>>;

// Rows that have come for a rank's experts: rank by rank, and of each rank expert by expert.
struct ArrivedRows {
  std::vector<std::int64_t> sizes;      // of each expert, of all ranks
  std::vector<std::int64_t> by_expert;  // where a row lies of those sorted by experts
  std::vector<std::int64_t> by_rank;    // and the other way round

  ArrivedRows(std::span<const ColumnCut> counts, std::span<const std::int64_t> of_ranks) {
    std::vector<std::int64_t> next;  // of each rank, the first of the expert at hand
    std::int64_t total = 0;
    for (const std::int64_t rows : of_ranks) {
      next.push_back(total);
      total += rows;
    }
    by_rank.resize(static_cast<std::size_t>(total));
    for (const ColumnCut& rows : counts) {
      sizes.push_back(rows.total());
      for (int rank = 0; rank < rows.ranks(); ++rank) {
        for (std::int64_t i = 0; i < rows.size(rank); ++i) {
          const std::int64_t at = next[static_cast<std::size_t>(rank)]++;
          by_rank[static_cast<std::size_t>(at)] = std::ssize(by_expert);
          by_expert.push_back(at);
        }
      }
    }
  }
};

// One pass over some rows: those of `rows`, or a team's own ones. Attention has all of them, and
// own heads in a team of either kind.
class LayerPass {
 public:
  LayerPass(const ModelConfig& config, const PassContext& pass,
            const std::optional<DropoutPass>& dropout, const forward::RowsPtr& rows,
            const Graph::Attend& attend)
      : config_(config),
        pass_(pass),
        spread_{.rows = own_rows(pass.team, *rows)},
        project_(pass, dropout, spread_.rows),
        rows_(rows),
        attend_(attend),
        heads_(config, pass.team) {}

  at::Tensor layer(std::int64_t index, const Layer& w, const at::Tensor& x) const {
    if (config_.norm_place == NormPlace::kAfter) {
      const at::Tensor middle =
          after(ops::add(pass_, x, attention(index, w, x)), w.attention_norm_after);
      return after(ops::add(pass_, middle, feed_forward(w, middle)), w.mlp_norm_after);
    }
    const at::Tensor middle =
        ops::add(pass_, x, after(attention(index, w, x), w.attention_norm_after));
    return ops::add(pass_, middle, after(feed_forward(w, middle), w.mlp_norm_after));
  }

 private:
  at::Tensor after(at::Tensor y, const Norm& norm) const {
    return exists(norm) ? ops::norm(pass_, y, norm, spread_) : y;
  }

  at::Tensor attention(std::int64_t index, const Layer& w, const at::Tensor& x) const {
    const Attention& a = w.attention;
    at::Tensor q, k, v;
    if (config_.latent) {
      std::tie(q, k, v) = latent_heads(w, x);
    } else {
      std::vector<at::Tensor> projected = project_.own(x, w.attention_norm, a.qkv);
      if (spread_.rows) {
        for (std::size_t i = 0; i < projected.size(); ++i)
          projected[i] =
              ops::columns_of_rows(pass_, projected[i], *spread_.rows, *a.qkv.bases[i].dealt);
      }
      q = turned(
          of_each_head(std::exchange(projected[0], {}), a.qkv.bases[0], config_.heads, a.q_norm),
          heads_.own);
      k = turned(
          of_each_head(std::exchange(projected[1], {}), a.qkv.bases[1], config_.kv_heads, a.k_norm),
          heads_.own_keys);
      v = std::move(projected[2]);
    }
    forward::AttentionShape shape = attention_shape(config_, index);
    shape.heads = heads_.own;
    shape.kv_heads = heads_.own_keys;
    at::Tensor y = attend_(index, shape, q, k, v);
    std::int64_t width = config_.head_dim;
    if (config_.latent && config_.latent->value_dim < config_.head_dim) {
      width = config_.latent->value_dim;
      y = y.view({y.size(0), heads_.own, config_.head_dim})
              .narrow(2, 0, width)
              .reshape({y.size(0), -1});
    }
    const auto columns = heads_.columns(width);
    if (spread_.rows)
      return project_.one(ops::rows_of_columns(pass_, y, *columns, *spread_.rows), a.o);
    return project_.joined(y, columns, a.o);
  }

  // A norm's weight is every head's: of a team's each rank has the norm of all of them.
  at::Tensor of_each_head(at::Tensor x, const Linear& layer, std::int64_t heads,
                          const Norm& norm) const {
    if (!exists(norm)) return x;
    const auto& cut = layer.cut ? layer.cut : layer.dealt;
    if (cut) x = ops::all_columns(pass_, x, *cut);
    x = ops::norm(pass_, x.view({x.size(0) * heads, -1}), norm).view({x.size(0), -1});
    return cut ? ops::own_columns(pass_, x, *cut) : x;
  }

  // Queries or keys with their positions. Where pairs are interleaved the dimensions come out of it
  // sorted: the same for queries and keys, which is all that their products ask for.
  at::Tensor turned(at::Tensor x, std::int64_t heads, std::int64_t first_row = 0) const {
    const std::int64_t rotary = config_.rotated();
    if (rotary == 0) return x;
    if (config_.rope_interleaved) {
      const at::Tensor all = x.view({x.size(0), heads, x.size(1) / heads});
      const at::Tensor pairs = all.narrow(2, 0, rotary).view({x.size(0), heads, rotary / 2, 2});
      x = at::cat({pairs.transpose(2, 3).reshape({x.size(0), heads, rotary}),
                   all.narrow(2, rotary, all.size(2) - rotary)},
                  2)
              .view(x.sizes());
    }
    return ops::rope(pass_, rows_, x, heads, first_row);
  }

  // Queries, keys and values as of ordinary attention, with the rotary dimensions first and values
  // filled up to the width of keys.
  std::tuple<at::Tensor, at::Tensor, at::Tensor> latent_heads(const Layer& w,
                                                              const at::Tensor& x) const {
    const Attention& a = w.attention;
    const LatentConfig& latent = *config_.latent;
    const std::int64_t rows = x.size(0);
    const std::int64_t rotary = config_.rotary_dim;
    const std::vector<at::Tensor> down = project_.normed(x, w.attention_norm, a.down);
    at::Tensor q =
        exists(a.q_up) ? project_.normed(down[0], a.q_down_norm, a.q_up).front() : down[0];
    q = q.view({rows, config_.heads, config_.head_dim});
    const std::int64_t width = config_.heads * config_.head_dim;
    q = at::cat({q.narrow(2, latent.nope_dim, rotary), q.narrow(2, 0, latent.nope_dim)}, 2)
            .view({rows, width});

    const at::Tensor compressed = down[1].narrow(1, 0, latent.kv_rank).contiguous();
    const at::Tensor kv = project_.normed(compressed, a.kv_down_norm, a.kv_up)
                              .front()
                              .view({rows, config_.heads, latent.nope_dim + latent.value_dim});
    const std::int64_t first = spread_.rows ? spread_.rows->first(pass_.team->rank()) : 0;
    const at::Tensor positions =
        turned(down[1].narrow(1, latent.kv_rank, rotary).contiguous(), 1, first)
            .view({rows, 1, rotary});
    const at::Tensor k =
        at::cat({positions.expand({rows, config_.heads, rotary}), kv.narrow(2, 0, latent.nope_dim)},
                2)
            .view({rows, width});
    const at::Tensor v = at::constant_pad_nd(kv.narrow(2, latent.nope_dim, latent.value_dim),
                                             {0, config_.head_dim - latent.value_dim})
                             .reshape({rows, width});
    q = turned(q, config_.heads, first);
    return {own_heads(q), own_heads(k), own_heads(v)};
  }

  // Of a team the rank's columns of what has all heads.
  at::Tensor own_heads(const at::Tensor& all) const {
    const auto columns = heads_.columns(config_.head_dim);
    if (!columns) return all;
    return spread_.rows ? ops::columns_of_rows(pass_, all, *spread_.rows, *columns)
                        : ops::own_columns(pass_, all, *columns);
  }

  at::Tensor feed_forward(const Layer& w, const at::Tensor& x) const {
    if (w.experts) return experts(*w.experts, after(x, w.mlp_norm));
    return project_.activated(config_.activation, project_.own(x, w.mlp_norm, w.mlp.in), w.mlp);
  }

  at::Tensor of_expert(const Projector& project, const Mlp& mlp, const at::Tensor& x) const {
    return project.activated(config_.activation, project.own(x, {}, mlp.in), mlp);
  }

  // Which experts each row takes, [T, k].
  at::Tensor choose(const Experts& w, const at::Tensor& scores) const {
    const MoeConfig& moe = *config_.moe;
    at::Tensor choice = w.correction.defined() ? scores + w.correction : scores;
    if (moe.groups > 1) {
      // A group is as good as its two best.
      const std::int64_t size = moe.experts / moe.groups;
      const at::Tensor grouped = choice.view({choice.size(0), moe.groups, size});
      const at::Tensor best = std::get<1>(
          at::topk(std::get<0>(at::topk(grouped, 2, 2)).sum(2), moe.groups_per_token, 1));
      const at::Tensor open =
          at::zeros_like(grouped.select(2, 0)).scatter(1, best, 1.0).unsqueeze(2);
      choice = at::where(open == 0, -std::numeric_limits<float>::infinity(), grouped)
                   .view({choice.size(0), moe.experts});
    }
    return std::get<1>(at::topk(choice, moe.experts_per_token, 1));
  }

  at::Tensor experts(const Experts& w, const at::Tensor& x) const {
    const MoeConfig& moe = *config_.moe;
    const std::int64_t rows = x.size(0);
    const at::Tensor logits = ops::linear(pass_, x, w.router, spread_);
    // Not ATen's sigmoid: it takes the last few numbers of all rows by another code than the rest,
    // so that a row's bits depend on how many there are.
    const at::Tensor scores = moe.score == MoeConfig::Score::kSigmoid
                                  ? ops::activate(pass_, kernel::Activation::kSigmoid, logits, {})
                                  : at::softmax(logits, 1);
    at::Tensor chosen;
    {
      c10::AutoGradMode off(false);
      chosen = choose(w, scores);
    }
    at::Tensor shares = scores.gather(1, chosen);
    if (moe.normalized) shares = shares / (shares.sum(1, /*keepdim=*/true) + 1e-20);
    if (moe.scaling != 1.0) shares = shares * moe.scaling;

    // Rows go to their experts, expert by expert, and come back in the order of each row's choices.
    const at::Tensor on_host = chosen.cpu().contiguous();
    const std::int64_t* expert_of = on_host.const_data_ptr<std::int64_t>();
    Takers takers(w.experts.size());
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t slot = 0; slot < moe.experts_per_token; ++slot)
        takers[static_cast<std::size_t>(expert_of[row * moe.experts_per_token + slot])].push_back(
            row);
    }
    const at::Tensor parts = deals_experts() ? by_owners(w, x, takers) : by_experts(w, x, takers);
    std::vector<std::int64_t> next;  // where an expert's next row is among all parts
    std::int64_t total = 0;
    for (const std::vector<std::int64_t>& of_expert : takers) {
      next.push_back(total);
      total += std::ssize(of_expert);
    }
    std::vector<std::int64_t> back;
    back.reserve(static_cast<std::size_t>(total));
    for (std::int64_t i = 0; i < rows * moe.experts_per_token; ++i)
      back.push_back(next[static_cast<std::size_t>(expert_of[i])]++);
    const at::Tensor outputs =
        ops::select_rows(parts, back).view({rows, moe.experts_per_token, x.size(1)});
    at::Tensor y = (outputs * shares.unsqueeze(2)).sum(1);
    return w.shared ? ops::add(pass_, y, of_expert(project_, *w.shared, x)) : y;
  }

  // How many of the pass's rows take each expert, on each rank of a team.
  std::vector<ColumnCut> counted(const Takers& takers) const {
    std::vector<std::int64_t> counts;
    for (const std::vector<std::int64_t>& rows : takers) counts.push_back(std::ssize(rows));
    return pass_.team->row_cuts(counts, "rows of experts");
  }

  // What each expert gives for its rows, expert by expert.
  at::Tensor by_experts(const Experts& w, const at::Tensor& x, const Takers& takers) const {
    std::vector<Projector> projectors;
    if (spread_.rows) {
      for (const ColumnCut& cut : counted(takers))
        projectors.push_back(project_.with(std::make_shared<const ColumnCut>(cut)));
    }
    std::vector<at::Tensor> parts;
    for (std::size_t expert = 0; expert < w.experts.size(); ++expert) {
      const Projector& project = projectors.empty() ? project_ : projectors[expert];
      if (!project.any(takers[expert].size())) continue;
      parts.push_back(of_expert(project, w.experts[expert], ops::select_rows(x, takers[expert])));
    }
    return at::cat(parts);
  }

  bool deals_experts() const {
    return pass_.team != nullptr && pass_.team->cut() == PassCut::kRowsAndExperts;
  }

  // The same where each expert is on one rank: rows go there, and what it gives comes back.
  at::Tensor by_owners(const Experts& w, const at::Tensor& x, const Takers& takers) const {
    const PassTeam& team = *pass_.team;
    const std::vector<ColumnCut> counts = counted(takers);
    const ColumnCut owned(std::ssize(w.experts), 1, team.size());
    std::vector<at::Tensor> own;
    std::vector<std::int64_t> sent, received;
    for (int peer = 0; peer < team.size(); ++peer) {
      sent.push_back(0);
      for (std::int64_t e = owned.first(peer); e < owned.first(peer) + owned.size(peer); ++e) {
        const auto expert = static_cast<std::size_t>(e);
        if (counts[expert].total() > 0) own.push_back(ops::select_rows(x, takers[expert]));
        sent.back() += std::ssize(takers[expert]);
      }
      received.push_back(0);
      for (const ColumnCut& rows : owned_counts(counts, owned)) received.back() += rows.size(peer);
    }
    const at::Tensor there = ops::exchanged_rows(pass_, at::cat(own), sent, received);
    const ArrivedRows rows(owned_counts(counts, owned), received);
    const at::Tensor sorted = ops::select_rows(there, rows.by_expert);
    std::vector<at::Tensor> parts;
    const std::vector<at::Tensor> inputs = sorted.split_with_sizes(rows.sizes);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (rows.sizes[i] == 0) continue;
      const auto expert = static_cast<std::size_t>(owned.first(team.rank())) + i;
      parts.push_back(of_expert(project_.with(nullptr), w.experts[expert], inputs[i]));
    }
    const at::Tensor outputs = parts.empty() ? sorted : at::cat(parts);
    return ops::exchanged_rows(pass_, ops::select_rows(outputs, rows.by_rank), received, sent);
  }

  // Of this rank's experts.
  std::span<const ColumnCut> owned_counts(std::span<const ColumnCut> counts,
                                          const ColumnCut& owned) const {
    const int rank = pass_.team->rank();
    return counts.subspan(static_cast<std::size_t>(owned.first(rank)),
                          static_cast<std::size_t>(owned.size(rank)));
  }

  const ModelConfig& config_;
  const PassContext& pass_;
  const ops::Spread spread_;
  const Projector project_;
  const forward::RowsPtr& rows_;
  const Graph::Attend& attend_;
  const Heads heads_;
};

}  // namespace

struct Graph::Weights {
  Weight embedding, positions;
  std::shared_ptr<const ColumnCut> vocabulary;  // how a team's ranks have the embedding
  Projection project_in, project_out;
  std::vector<Layer> layers;
  Norm last_norm;
  Linear lm_head;  // the embedding when tied: both uses add to one gradient
  std::vector<std::vector<std::pair<std::string, Weight>>> heads;
  bool trained = false;
  DropoutPasses* passes = nullptr;     // of an adapter that drops
  std::optional<DropoutPass> dropout;  // of the pass that began last
};

Graph::Graph(const ModelConfig& config, const Parameters& values, GradientArena* gradients,
             kernel::ThreadPool& pool, std::optional<Adapter> adapter, const PassTeam* team)
    : config_(config), pool_(pool) {
  const bool is_pipeline = team != nullptr && team->cut() == PassCut::kLayers;
  team_ = is_pipeline ? nullptr : team;
  if (is_pipeline)
    pipeline_ =
        std::make_unique<const Pipeline>(*team, StageCuts(config, values.specs(), team->size()));
  const ModelPlan plan = plan_of(config);
  const Binder bind(config, plan, values, gradients, adapter, team_,
                    pipeline_ ? &pipeline_->cuts().differentiated(pipeline_->stage()) : nullptr);
  weights_ = std::make_unique<Weights>();
  std::tie(weights_->embedding, weights_->vocabulary) = bind.vocabulary(plan.embedding);
  weights_->positions = bind.weight(plan.positions);
  weights_->project_in = bind.projection({plan.project_in});
  weights_->project_out = bind.projection({plan.project_out});
  for (const LayerPlan& layer : plan.layers) weights_->layers.push_back(bind.layer(layer));
  weights_->last_norm = bind.norm(plan.last_norm);
  weights_->lm_head = bind.linear(plan.lm_head);
  for (const HeadPlan& head : plan.heads) {
    auto& list = weights_->heads.emplace_back();
    for (ParameterIndex i = head.first; i < head.first + head.count; ++i)
      list.emplace_back(plan.parameters[static_cast<std::size_t>(i)].name, bind.weight(i));
  }
  weights_->trained = gradients != nullptr || (adapter && adapter->gradients != nullptr);
  if (adapter && adapter->gradients != nullptr && adapter->lora.config().dropout > 0)
    weights_->passes = adapter->passes;
}

Graph::~Graph() = default;

// The first layer's input.
at::Tensor Graph::embedded(const forward::RowsPtr& rows, const PassContext& pass,
                           const std::shared_ptr<const ColumnCut>& own) const {
  at::Tensor x = ops::embedding(pass, weights_->embedding, rows->ids, weights_->trained,
                                {.cut = weights_->vocabulary, .rows = own});
  if (pipeline_ && pipeline_->cuts().is_tied()) x = pipeline_->giving_gradient_to_last(x);
  if (config_.embedding_scale != 1.0) x = x * static_cast<float>(config_.embedding_scale);
  weights_->dropout.reset();
  if (weights_->passes != nullptr && c10::GradMode::is_enabled())
    weights_->dropout = weights_->passes->take();
  if (exists(weights_->project_in))
    x = Projector(pass, weights_->dropout, own).one(x, weights_->project_in);
  if (!weights_->positions.value.defined()) return x;
  std::vector<std::int32_t> at = rows->positions;
  for (std::int32_t& position : at) position += static_cast<std::int32_t>(config_.position_offset);
  return ops::add(pass, x,
                  ops::embedding(pass, weights_->positions, at, weights_->trained, {.rows = own}));
}

at::Tensor Graph::hidden_states(const forward::RowsPtr& rows, const Attend& attend,
                                const PassOptions& options) const {
  const PassContext pass = context(options);
  before_forward(-1);
  const std::shared_ptr<const ColumnCut> own = own_rows(team_, *rows);
  at::Tensor x;
  if (!pipeline_ || pipeline_->is_first()) x = embedded(rows, pass, own);
  const LayerPass layers(config_, pass, weights_->dropout, rows, attend);
  for (std::size_t i = 0; i < weights_->layers.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    x = reached(layer, rows, x);
    before_forward(layer);
    if (pipeline_ && !pipeline_->has(layer)) continue;
    const bool recompute = options.recompute_layers && autograd::needed({x});
    x = recompute ? recomputed_layer(i, rows, attend, pass, x)
                  : layers.layer(layer, weights_->layers[i], x);
    if (listeners_.empty()) continue;
    x = autograd::before_backward(x, [told = before_backward(), layer] { told(layer); });
  }
  return own ? ops::all_rows(pass, x, *own) : x;
}

// Where a stage of a pipeline begins, rows go from the one before it to it.
at::Tensor Graph::reached(std::int64_t layer, const forward::RowsPtr& rows,
                          const at::Tensor& x) const {
  if (!pipeline_) return x;
  // The gradient of a tied table is the output layer's to add.
  const auto behind = [this, rows] {
    if (!pipeline_->cuts().is_tied()) return;
    const at::Tensor dy =
        pipeline_->gradient_of_first(rows->count(), weights_->embedding.value.size(1));
    if (pipeline_->is_last()) ops::add_embedding_gradient(weights_->embedding, rows->ids, dy);
  };
  return pipeline_->at_layer(layer, x, rows->count(), config_.hidden_size, weights_->trained,
                             before_backward(), behind);
}

bool Graph::makes_outputs() const { return !pipeline_ || pipeline_->is_last(); }

std::vector<at::Tensor> Graph::outputs(const at::Tensor& hidden,
                                       std::vector<at::Tensor> made) const {
  if (!pipeline_) return made;
  if (!pipeline_->is_last()) before_forward(static_cast<std::int64_t>(weights_->layers.size()));
  return pipeline_->outputs(hidden, std::move(made), before_backward());
}

std::function<void(std::int64_t layer)> Graph::before_backward() const {
  return [listeners = listeners_](std::int64_t layer) {
    for (LayerListener* listener : listeners) listener->before_backward(layer);
  };
}

void Graph::before_forward(std::int64_t layer) const {
  for (LayerListener* listener : listeners_) listener->before_forward(layer);
}

at::Tensor Graph::recomputed_layer(std::size_t index, const forward::RowsPtr& rows,
                                   const Attend& attend, const PassContext& pass,
                                   const at::Tensor& x) const {
  // What was dropped is dropped again, also while the graph is left out.
  const auto layer = [this, index, rows, attend, pass,
                      dropout = weights_->dropout](const at::Tensor& in) {
    return LayerPass(config_, pass, dropout, rows, attend)
        .layer(static_cast<std::int64_t>(index), weights_->layers[index], in);
  };
  return autograd::recomputed(x, layer);
}

at::Tensor Graph::last_norm(const at::Tensor& hidden, const PassOptions& options) const {
  const PassContext pass = context(options);
  before_forward(static_cast<std::int64_t>(weights_->layers.size()));
  const at::Tensor x =
      exists(weights_->last_norm) ? ops::norm(pass, hidden, weights_->last_norm) : hidden;
  return exists(weights_->project_out)
             ? Projector(pass, weights_->dropout, nullptr).one(x, weights_->project_out)
             : x;
}

at::Tensor Graph::head(std::size_t index, const at::Tensor& normed,
                       const PassOptions& options) const {
  const HeadConfig& config = config_.output_heads[index];
  return find_head_kind(config.kind)
      ->compute(HeadInputs(config, normed, weights_->heads[index], context(options)));
}

at::Tensor Graph::trained_logits(const at::Tensor& normed, const PassOptions& options) const {
  const at::Tensor logits = ops::linear(context(options), normed, weights_->lm_head);
  if (config_.logit_softcap == 0.0) return logits;
  return at::tanh(logits / config_.logit_softcap) * config_.logit_softcap;
}

at::Tensor Graph::logits(const at::Tensor& normed, const PassOptions& options) const {
  const PassContext pass = context(options);
  c10::AutoGradMode off(false);
  at::Tensor logits = ops::linear(pass, normed, weights_->lm_head);
  forward::softcap_(pass, logits, static_cast<float>(config_.logit_softcap));
  return logits;
}

ops::LmHeadOutputs Graph::logprobs(const at::Tensor& normed, std::span<const std::int32_t> targets,
                                   ops::LmHeadOptions wanted, const PassOptions& options) const {
  wanted.softcap = static_cast<float>(config_.logit_softcap);
  return ops::lm_head_logprobs(context(options), normed, weights_->lm_head, targets, wanted);
}

forward::AttentionShape attention_shape(const ModelConfig& config, std::int64_t layer) {
  const double scale = config.attention_scale > 0.0
                           ? config.attention_scale
                           : 1.0 / std::sqrt(static_cast<double>(config.head_dim));
  return {.heads = config.heads,
          .kv_heads = config.kv_heads,
          .head_dim = config.head_dim,
          .scale = static_cast<float>(scale),
          .softcap = static_cast<float>(config.attention_softcap),
          .window = config.window(layer)};
}

}  // namespace rl
