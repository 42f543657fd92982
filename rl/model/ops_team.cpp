// The exchanges of a team's ranks between the operations of a pass, and embeddings.
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include <cstddef>
#include <utility>

#include "rl/model/autograd.h"
#include "rl/model/linear_backward.h"
#include "rl/model/ops.h"
#include "rl/model/parallel.h"
#include "rl/model/pass_team.h"
#include "rl/model/row_sums.h"

namespace rl::ops {
namespace {

// The ids whose gradients a rank adds to a table's; of a part those whose rows it has.
struct AddedIds {
  std::vector<std::int32_t> ids;     // from the first of the rank's rows on
  std::vector<std::int64_t> places;  // among all; of a part
  std::vector<int> owner;            // of each of all; of a part

  AddedIds(const PassContext& pass, std::span<const std::int32_t> all, const ColumnCut* cut) {
    if (cut == nullptr) {
      ids.assign(all.begin(), all.end());
      return;
    }
    const int rank = pass.team->rank();
    for (std::size_t i = 0; i < all.size(); ++i) {
      int at = 0;
      while (all[i] >= cut->first(at) + cut->size(at)) ++at;
      owner.push_back(at);
      if (at != rank) continue;
      ids.push_back(all[i] - static_cast<std::int32_t>(cut->first(rank)));
      places.push_back(static_cast<std::int64_t>(i));
    }
  }
};

// What a rank adds to the gradient of a table, of the gradients of what was looked up.
class TableGradient {
 public:
  explicit TableGradient(AddedIds added)
      : sums_({added.ids.begin(), added.ids.end()}), places_(std::move(added.places)) {}

  void add(const PassContext& pass, const Weight& table, const TableSpread& spread,
           at::Tensor dy) const {
    if (spread.rows) dy = pass.team->all_rows(dy, *spread.rows, "gradients of embeddings");
    if (!table.trained()) return;
    table.sum->begin_rows(sums_.destinations());
    sums_.add(table.grad, spread.cut ? dy.index_select(0, places_.index(dy.device())) : dy);
  }

 private:
  RowSums sums_;
  RowSums places_;
};

at::Tensor looked_up(const PassContext& pass, const Weight& table,
                     std::span<const std::int32_t> ids, const AddedIds& added,
                     const TableSpread& spread) {
  c10::AutoGradMode off(false);
  if (spread.rows) {
    const int rank = pass.team->rank();
    return forward::embedding(pass, table.value,
                              ids.subspan(static_cast<std::size_t>(spread.rows->first(rank)),
                                          static_cast<std::size_t>(spread.rows->size(rank))));
  }
  if (!spread.cut) return forward::embedding(pass, table.value, ids);
  return pass.team->all_rows(forward::embedding(pass, table.value, added.ids), added.owner,
                             "embeddings");
}

// What `there` makes of x, on the way back undone by `back`.
template <class There, class Back>
at::Tensor moved(const char* name, const at::Tensor& x, const There& there, Back back) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = there(x.detach());  // may be a view of it
  }
  if (!autograd::needed({x})) return y;
  autograd::connect(name, y, {x}, [back = std::move(back)](const auto& grads) {
    return std::vector<at::Tensor>{back(grads[0])};
  });
  return y;
}

}  // namespace

at::Tensor embedding(const PassContext& pass, const Weight& table,
                     std::span<const std::int32_t> ids, bool track, const TableSpread& spread) {
  AddedIds added(pass, ids, spread.cut.get());
  at::Tensor y = looked_up(pass, table, ids, added, spread);
  if (!c10::GradMode::is_enabled() || !(track || table.trained())) return y;
  const at::Tensor anchor = autograd::anchor();
  autograd::connect(
      "embedding backward", y, {anchor},
      [pass, table, spread, gradient = TableGradient(std::move(added))](const auto& grads) {
        if (grads[0].defined()) gradient.add(pass, table, spread, grads[0]);
        return std::vector<at::Tensor>(1);
      });
  return y;
}

void add_embedding_gradient(const PassContext& pass, const Weight& table,
                            std::span<const std::int32_t> ids, const at::Tensor& dy,
                            const TableSpread& spread) {
  TableGradient(AddedIds(pass, ids, spread.cut.get())).add(pass, table, spread, dy);
}

at::Tensor all_columns(const PassContext& pass, const at::Tensor& own, const ColumnCut& cut) {
  const PassTeam* team = pass.team;
  return moved(
      "all columns backward", own,
      [&](const at::Tensor& x) { return team->all_columns(x, cut, "outputs"); },
      [team, cut](const at::Tensor& dy) { return team->own_columns(dy, cut); });
}

at::Tensor own_columns(const PassContext& pass, const at::Tensor& all, const ColumnCut& cut) {
  const PassTeam* team = pass.team;
  return moved(
      "own columns backward", all, [&](const at::Tensor& x) { return team->own_columns(x, cut); },
      [team, cut](const at::Tensor& dy) {
        return team->all_columns(dy, cut, "gradients of own columns");
      });
}

ColumnCut blocks_of_ranks(std::int64_t rows, int ranks) {
  const std::vector<Block> blocks = cut(rows, kRowsLeast, at::kCPU);
  return {static_cast<std::int64_t>(blocks.size()), 1, ranks};
}

std::shared_ptr<const ColumnCut> rows_of_ranks(std::int64_t rows, int ranks) {
  const std::vector<Block> blocks = cut(rows, kRowsLeast, at::kCPU);
  const ColumnCut dealt = blocks_of_ranks(rows, ranks);
  std::vector<std::int64_t> sizes;
  for (int rank = 0; rank < ranks; ++rank) {
    std::int64_t size = 0;
    for (std::int64_t i = 0; i < dealt.size(rank); ++i)
      size += blocks[static_cast<std::size_t>(dealt.first(rank) + i)].count;
    sizes.push_back(size);
  }
  return std::make_shared<const ColumnCut>(ColumnCut::of_sizes(sizes));
}

at::Tensor all_rows(const PassContext& pass, const at::Tensor& own, const ColumnCut& rows) {
  const PassTeam* team = pass.team;
  return moved(
      "all rows backward", own,
      [&](const at::Tensor& x) { return team->all_rows(x, rows, "rows"); },
      [team, rows](const at::Tensor& dy) { return team->own_rows(dy, rows).contiguous(); });
}

at::Tensor columns_of_rows(const PassContext& pass, const at::Tensor& own_rows,
                           const ColumnCut& rows, const ColumnCut& columns) {
  const PassTeam* team = pass.team;
  return moved(
      "columns of rows backward", own_rows,
      [&](const at::Tensor& x) {
        return team->columns_of_rows(x, rows, columns, "heads of all rows");
      },
      [team, rows, columns](const at::Tensor& dy) {
        return team->rows_of_columns(dy, columns, rows, "gradients of heads");
      });
}

at::Tensor rows_of_columns(const PassContext& pass, const at::Tensor& own_columns,
                           const ColumnCut& columns, const ColumnCut& rows) {
  const PassTeam* team = pass.team;
  return moved(
      "rows of columns backward", own_columns,
      [&](const at::Tensor& x) {
        return team->rows_of_columns(x, columns, rows, "rows of all heads");
      },
      [team, rows, columns](const at::Tensor& dy) {
        return team->columns_of_rows(dy, rows, columns, "gradients of rows");
      });
}

at::Tensor exchanged_rows(const PassContext& pass, const at::Tensor& rows,
                          const std::vector<std::int64_t>& sent,
                          const std::vector<std::int64_t>& received) {
  const PassTeam* team = pass.team;
  return moved(
      "exchanged rows backward", rows,
      [&](const at::Tensor& x) {
        return team->exchanged_rows(x, sent, received, "rows of experts");
      },
      [team, sent, received](const at::Tensor& dy) {
        return team->exchanged_rows(dy, received, sent, "gradients of experts' rows");
      });
}

}  // namespace rl::ops
