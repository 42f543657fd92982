// LayerPass: a transformer's layer over the rows of one pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>

#include "rl/mesh/column_cut.h"
#include "rl/model/attend.h"
#include "rl/model/bound_weights.h"
#include "rl/model/dropout.h"
#include "rl/model/experts_pass.h"
#include "rl/model/forward.h"
#include "rl/model/model_config.h"
#include "rl/model/ops.h"
#include "rl/model/projector.h"

namespace rl {

/// Which of the rows of a pass the rank computes, of a team that cuts rows; null: all of them.
std::shared_ptr<const ColumnCut> own_rows(const PassTeam* team, const forward::Rows& rows);

/// One pass over some rows: those of `rows`, or a team's own ones. Attention has all of them, and
/// own heads in a team of either kind. Borrows everything it is given.
class LayerPass {
 public:
  LayerPass(const ModelConfig& config, const PassContext& pass,
            const std::optional<DropoutPass>& dropout, const forward::RowsPtr& rows,
            const Attend& attend);
  LayerPass(const LayerPass&) = delete;
  LayerPass& operator=(const LayerPass&) = delete;

  /// x [own rows, hidden] -> the same.
  at::Tensor layer(std::int64_t index, const bound::Layer& w, const at::Tensor& x) const;

 private:
  // The heads whose attention a rank computes: all of them, or of a team the ranks' in turn.
  struct Heads {
    std::int64_t own = 0;
    std::int64_t own_keys = 0;
    std::int64_t group = 1;  // queries of a key head
    ColumnCut keys;          // of a team

    Heads(const ModelConfig& config, const PassTeam* team);
    // Of what has N columns for each head of queries; null: no team.
    std::shared_ptr<const ColumnCut> columns(std::int64_t width) const;
  };

  at::Tensor after(at::Tensor y, const bound::Norm& norm) const;
  at::Tensor attention(std::int64_t index, const bound::Layer& w, const at::Tensor& x) const;
  std::tuple<at::Tensor, at::Tensor, at::Tensor> heads(const bound::Layer& w,
                                                       const at::Tensor& x) const;
  std::tuple<at::Tensor, at::Tensor, at::Tensor> latent_heads(const bound::Layer& w,
                                                              const at::Tensor& x) const;
  at::Tensor of_each_head(at::Tensor x, const bound::Linear& layer, std::int64_t heads,
                          const bound::Norm& norm) const;
  at::Tensor turned(at::Tensor x, std::int64_t heads, std::int64_t first_row = 0) const;
  at::Tensor own_heads(const at::Tensor& all) const;
  at::Tensor feed_forward(const bound::Layer& w, const at::Tensor& x) const;

  const ModelConfig& config_;
  const PassContext& pass_;
  const ops::Spread spread_;
  const Projector project_;
  const ExpertsPass experts_;
  const forward::RowsPtr& rows_;
  const Attend& attend_;
  const Heads heads_;
};

}  // namespace rl
