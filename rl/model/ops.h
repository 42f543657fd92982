// Differentiable operations of a transformer: forward.h's computations with gradients written by
// hand. Parameters are no autograd variables: an operation adds the gradient of its weights
// straight into Weight::grad, a view of the gradient arena. No gradient tensor is ever allocated,
// and summing micro-batches costs nothing extra. The first gradient of an update is written there
// instead of added. What can be computed again for the price of one pass over memory (norms, gated
// products) is not kept for backward. Shapes: as forward.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rl/mesh/column_cut.h"
#include "rl/model/forward.h"
#include "rl/model/gradient_arena.h"
#include "rl/model/model_config.h"
#include "rl/model/pass_options.h"

namespace rl {

class TiedTableSum;

}  // namespace rl

namespace rl::ops {

/// A parameter, and where its gradient is added; an undefined grad means frozen.
struct Weight {
  at::Tensor value;
  at::Tensor grad;
  std::shared_ptr<GradientSum> sum;  // with grad

  bool trained() const { return grad.defined(); }
  /// Whether a backward pass adds to the gradient.
  bool adds() const { return trained() && !sum->is_paused(); }

  /// Adds a tensor of the gradient's shape to it.
  void add_gradient(const at::Tensor& gradient) const;
  /// The same of the sum of a tensor's rows.
  void add_gradient_of_rows(const at::Tensor& rows) const;
};

/// A weight [O, I], and a bias [O] whose value may be undefined.
struct Linear {
  Weight weight;
  Weight bias;
  /// Of the outputs, where a PassTeam shares the layer: weight and bias are the rank's own rows.
  std::shared_ptr<const ColumnCut> cut = nullptr;
  /// Of the outputs, where every rank has the whole layer: the gradients are those of the rank's
  /// own rows.
  std::shared_ptr<const ColumnCut> dealt = nullptr;
};

/// What a rank has of what goes into layers that a PassTeam shares, and of what comes out.
struct Spread {
  std::shared_ptr<const ColumnCut> in = nullptr;  // its own columns; null: all
  bool own_outputs = false;
  /// Its own rows, of inputs and outputs; null: all. See rows_of_ranks().
  std::shared_ptr<const ColumnCut> rows = nullptr;
};

struct Norm {
  NormKind kind = NormKind::kRms;
  float eps = 0;
  Weight weight;  // [O]
  Weight bias;    // [O], of kLayer alone
};

/// How a PassTeam shares an embedding.
struct TableSpread {
  /// Of the table's rows: those that a rank has, or with `rows` those whose gradients it adds;
  /// null: all.
  std::shared_ptr<const ColumnCut> cut = nullptr;
  /// The ids whose rows a rank looks up, in a whole table; null: all.
  std::shared_ptr<const ColumnCut> rows = nullptr;
};

/// Rows of `table`. The result requires a gradient when the table is trained or `track` says that
/// something behind it is.
at::Tensor embedding(const PassContext& pass, const Weight& table,
                     std::span<const std::int32_t> ids, bool track, const TableSpread& spread = {});

/// Adds the gradients of rows that were looked up [T, O] to those of the table: for who has them
/// from elsewhere. With TableSpread::rows each rank has those of its rows.
void add_embedding_gradient(const PassContext& pass, const Weight& table,
                            std::span<const std::int32_t> ids, const at::Tensor& dy,
                            const TableSpread& spread);

/// x [T, I] times each weight transposed, plus its bias; one gradient of x for all of them (q, k
/// and v; gate and up).
std::vector<at::Tensor> linear(const PassContext& pass, const at::Tensor& x,
                               std::span<const Linear> layers, const Spread& spread = {});
at::Tensor linear(const PassContext& pass, const at::Tensor& x, const Linear& layer,
                  const Spread& spread = {});

/// What the others of the team have of a tensor's columns, and the other way round.
at::Tensor all_columns(const PassContext& pass, const at::Tensor& own, const ColumnCut& cut);
at::Tensor own_columns(const PassContext& pass, const at::Tensor& all, const ColumnCut& cut);

/// Which of a pass's rows each rank of a team has. Each has whole blocks of those in which sums
/// over rows are made. The sums thus have the bits of one rank.
std::shared_ptr<const ColumnCut> rows_of_ranks(std::int64_t rows, int ranks);

/// What the others of the team have of a tensor's rows. Every rank has the whole gradient.
at::Tensor all_rows(const PassContext& pass, const at::Tensor& own, const ColumnCut& rows);
/// From all columns of the rank's own rows to its own columns of all rows, and back.
at::Tensor columns_of_rows(const PassContext& pass, const at::Tensor& own_rows,
                           const ColumnCut& rows, const ColumnCut& columns);
at::Tensor rows_of_columns(const PassContext& pass, const at::Tensor& own_columns,
                           const ColumnCut& columns, const ColumnCut& rows);

/// PassTeam::exchanged_rows().
at::Tensor exchanged_rows(const PassContext& pass, const at::Tensor& rows,
                          const std::vector<std::int64_t>& sent,
                          const std::vector<std::int64_t>& received);

/// linear(norm(x)), keeping only x and a number or two a row.
std::vector<at::Tensor> norm_linear(const PassContext& pass, const at::Tensor& x, const Norm& norm,
                                    std::span<const Linear> layers, const Spread& spread = {});

at::Tensor norm(const PassContext& pass, const at::Tensor& x, const Norm& norm,
                const Spread& spread = {});

/// activation(gate) * up, keeping only those; `up` may be undefined.
at::Tensor activate(const PassContext& pass, forward::Activation activation, const at::Tensor& gate,
                    const at::Tensor& up);

/// linear(activation(gate) * up), keeping only gate and up; `up` may be undefined. `spread` is that
/// of gate and up; the result has all of its columns.
at::Tensor activate_linear(const PassContext& pass, forward::Activation activation,
                           const at::Tensor& gate, const at::Tensor& up, const Linear& down,
                           const Spread& spread = {});

at::Tensor add(const PassContext& pass, const at::Tensor& a, const at::Tensor& b);

/// x has the rows from `first` on.
at::Tensor rope(const PassContext& pass, const forward::RowsPtr& rows, const at::Tensor& x,
                std::int64_t heads, std::int64_t first = 0);

/// Causal attention within each sequence. Memory in backward: the scores of 256 queries of one
/// sequence and key head, a thread; on a device see PaddedAttention.
at::Tensor attention(const PassContext& pass, const forward::RowsPtr& rows,
                     const forward::AttentionShape& shape, const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v);

/// The given rows of x, [N, O]; a row may be taken more than once.
at::Tensor select_rows(const at::Tensor& x, std::span<const std::int64_t> rows);

/// On a device at least as many rows of logits are computed at a time as fill this: each chunk
/// costs launches.
inline constexpr std::int64_t kDeviceLogitBytes = 256 << 20;

struct LmHeadOptions {
  float temperature = 1.0F;
  float softcap = 0.0F;  // of the logits, before the temperature; 0: none
  bool with_entropy = false;
  bool with_squares = false;
  std::int64_t rows_max = 256;      // logits alive at a time, in rows (see kDeviceLogitBytes)
  std::int64_t kept_bytes_max = 0;  // logits kept for backward; beyond this it computes them again
  TiedTableSum* tied_table = nullptr;  // of whose rows some may have to wait
};

/// Of each row's distribution p = softmax(linear(x) / temperature); undefined unless asked for, but
/// for the first.
struct LmHeadOutputs {
  at::Tensor logprob;  // of the target
  at::Tensor entropy;
  at::Tensor squares;  // the sum of p^2; a number without gradient
};

/// Never holds more logits than the options say.
LmHeadOutputs lm_head_logprobs(const PassContext& pass, const at::Tensor& x, const Linear& layer,
                               std::span<const std::int32_t> targets, const LmHeadOptions& options);

}  // namespace rl::ops
