#include "rl/model/layer_pass.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>

#include <utility>
#include <vector>

#include "rl/model/pass_team.h"

namespace rl {

using bound::Attention;
using bound::exists;
using bound::Layer;
using bound::Linear;
using bound::Norm;

std::shared_ptr<const ColumnCut> own_rows(const PassTeam* team, const forward::Rows& rows) {
  if (team == nullptr || !cuts_rows(team->cut())) return nullptr;
  return ops::rows_of_ranks(rows.count(), team->size());
}

LayerPass::Heads::Heads(const ModelConfig& config, const PassTeam* team)
    : own(config.heads), own_keys(config.kv_heads) {
  if (team == nullptr) return;
  group = config.heads / config.kv_heads;
  keys = ColumnCut(config.kv_heads, 1, team->size());
  own_keys = keys.size(team->rank());
  own = own_keys * group;
}

std::shared_ptr<const ColumnCut> LayerPass::Heads::columns(std::int64_t width) const {
  if (keys.ranks() == 0) return nullptr;
  return std::make_shared<const ColumnCut>(keys.total(), group * width, keys.ranks());
}

LayerPass::LayerPass(const ModelConfig& config, const PassContext& pass,
                     const std::optional<DropoutPass>& dropout, const forward::RowsPtr& rows,
                     const Attend& attend)
    : config_(config),
      pass_(pass),
      spread_{.rows = own_rows(pass.team, *rows)},
      project_(pass, dropout, spread_.rows),
      experts_(config, pass, project_, spread_.rows),
      rows_(rows),
      attend_(attend),
      heads_(config, pass.team) {}

at::Tensor LayerPass::layer(std::int64_t index, const Layer& w, const at::Tensor& x) const {
  if (config_.norm_place == NormPlace::kAfter) {
    const at::Tensor middle =
        after(ops::add(pass_, x, attention(index, w, x)), w.attention_norm_after);
    return after(ops::add(pass_, middle, feed_forward(w, middle)), w.mlp_norm_after);
  }
  const at::Tensor middle =
      ops::add(pass_, x, after(attention(index, w, x), w.attention_norm_after));
  return ops::add(pass_, middle, after(feed_forward(w, middle), w.mlp_norm_after));
}

at::Tensor LayerPass::after(at::Tensor y, const Norm& norm) const {
  return exists(norm) ? ops::norm(pass_, y, norm, spread_) : y;
}

at::Tensor LayerPass::attention(std::int64_t index, const Layer& w, const at::Tensor& x) const {
  const Attention& a = w.attention;
  const auto [q, k, v] = config_.latent ? latent_heads(w, x) : heads(w, x);
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

std::tuple<at::Tensor, at::Tensor, at::Tensor> LayerPass::heads(const Layer& w,
                                                                const at::Tensor& x) const {
  const Attention& a = w.attention;
  std::vector<at::Tensor> projected = project_.own(x, w.attention_norm, a.qkv);
  if (spread_.rows) {
    for (std::size_t i = 0; i < projected.size(); ++i)
      projected[i] =
          ops::columns_of_rows(pass_, projected[i], *spread_.rows, *a.qkv.bases[i].dealt);
  }
  at::Tensor q =
      turned(of_each_head(std::exchange(projected[0], {}), a.qkv.bases[0], config_.heads, a.q_norm),
             heads_.own);
  at::Tensor k = turned(
      of_each_head(std::exchange(projected[1], {}), a.qkv.bases[1], config_.kv_heads, a.k_norm),
      heads_.own_keys);
  return {std::move(q), std::move(k), std::move(projected[2])};
}

// A norm's weight is every head's: of a team's each rank has the norm of all of them.
at::Tensor LayerPass::of_each_head(at::Tensor x, const Linear& layer, std::int64_t heads,
                                   const Norm& norm) const {
  if (!exists(norm)) return x;
  const auto& cut = layer.cut ? layer.cut : layer.dealt;
  if (cut) x = ops::all_columns(pass_, x, *cut);
  x = ops::norm(pass_, x.view({x.size(0) * heads, -1}), norm).view({x.size(0), -1});
  return cut ? ops::own_columns(pass_, x, *cut) : x;
}

// Queries or keys with their positions. Where pairs are interleaved the dimensions come out of it
// sorted: the same for queries and keys, which is all that their products ask for.
at::Tensor LayerPass::turned(at::Tensor x, std::int64_t heads, std::int64_t first_row) const {
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
std::tuple<at::Tensor, at::Tensor, at::Tensor> LayerPass::latent_heads(const Layer& w,
                                                                       const at::Tensor& x) const {
  const Attention& a = w.attention;
  const LatentConfig& latent = *config_.latent;
  const std::int64_t rows = x.size(0);
  const std::int64_t rotary = config_.rotary_dim;
  const std::vector<at::Tensor> down = project_.normed(x, w.attention_norm, a.down);
  at::Tensor q = exists(a.q_up) ? project_.normed(down[0], a.q_down_norm, a.q_up).front() : down[0];
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
at::Tensor LayerPass::own_heads(const at::Tensor& all) const {
  const auto columns = heads_.columns(config_.head_dim);
  if (!columns) return all;
  return spread_.rows ? ops::columns_of_rows(pass_, all, *spread_.rows, *columns)
                      : ops::own_columns(pass_, all, *columns);
}

at::Tensor LayerPass::feed_forward(const Layer& w, const at::Tensor& x) const {
  if (w.experts) return experts_(*w.experts, after(x, w.mlp_norm));
  return project_.activated(config_.activation, project_.own(x, w.mlp_norm, w.mlp.in), w.mlp);
}

}  // namespace rl
