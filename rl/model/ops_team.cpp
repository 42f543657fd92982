// What ranks of a team tell one another between the operations of a pass, and embeddings.
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
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

// Of the ids those whose rows a rank has, and which rank has each one's.
struct OwnIds {
  std::vector<std::int32_t> ids;     // from the first of the rank's rows on
  std::vector<std::int64_t> places;  // among all
  std::vector<int> owner;            // of each of all

  OwnIds(std::span<const std::int32_t> all, const ColumnCut& cut, int rank) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      int at = 0;
      while (all[i] >= cut.first(at) + cut.size(at)) ++at;
      owner.push_back(at);
      if (at != rank) continue;
      ids.push_back(all[i] - static_cast<std::int32_t>(cut.first(rank)));
      places.push_back(static_cast<std::int64_t>(i));
    }
  }
};

// Which ids' gradients are added to a table's.
struct AddedIds {
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> places;  // among all; of a part
  std::vector<int> owner;

  AddedIds(const PassContext& pass, std::span<const std::int32_t> all, const TableSpread& spread) {
    if (!spread.cut) {
      ids.assign(all.begin(), all.end());
      return;
    }
    OwnIds own(all, *spread.cut, pass.team->rank());
    ids = std::move(own.ids);
    places = std::move(own.places);
    owner = std::move(own.owner);
  }
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

}  // namespace

at::Tensor embedding(const PassContext& pass, const Weight& table,
                     std::span<const std::int32_t> ids, bool track, const TableSpread& spread) {
  AddedIds added(pass, ids, spread);
  at::Tensor y = looked_up(pass, table, ids, added, spread);
  if (!c10::GradMode::is_enabled() || !(track || table.trained())) return y;
  const at::Tensor anchor = autograd::anchor();
  autograd::connect("embedding backward", y, {anchor},
                    [pass, table, spread, sums = RowSums({added.ids.begin(), added.ids.end()}),
                     places = RowSums(std::move(added.places))](const auto& grads) {
                      at::Tensor dy = grads[0];
                      if (!dy.defined()) return std::vector<at::Tensor>(1);
                      if (spread.rows)
                        dy = pass.team->all_rows(dy, *spread.rows, "gradients of embeddings");
                      if (!table.trained()) return std::vector<at::Tensor>(1);
                      table.sum->begin_rows(sums.destinations());
                      sums.add(table.grad,
                               spread.cut ? dy.index_select(0, places.index(dy.device())) : dy);
                      return std::vector<at::Tensor>(1);
                    });
  return y;
}

at::Tensor all_columns(const PassContext& pass, const at::Tensor& own, const ColumnCut& cut) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = pass.team->all_columns(own, cut, "outputs");
  }
  if (!autograd::needed({own})) return y;
  autograd::connect("all columns backward", y, {own}, [pass, cut](const auto& grads) {
    return std::vector<at::Tensor>{pass.team->own_columns(grads[0], cut)};
  });
  return y;
}

at::Tensor own_columns(const PassContext& pass, const at::Tensor& all, const ColumnCut& cut) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = pass.team->own_columns(all.detach(), cut);  // a view, of one row
  }
  if (!autograd::needed({all})) return y;
  autograd::connect("own columns backward", y, {all}, [pass, cut](const auto& grads) {
    return std::vector<at::Tensor>{
        pass.team->all_columns(grads[0], cut, "gradients of own columns")};
  });
  return y;
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
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = pass.team->all_rows(own, rows, "rows");
  }
  if (!autograd::needed({own})) return y;
  autograd::connect("all rows backward", y, {own}, [pass, rows](const auto& grads) {
    return std::vector<at::Tensor>{pass.team->own_rows(grads[0], rows).contiguous()};
  });
  return y;
}

at::Tensor columns_of_rows(const PassContext& pass, const at::Tensor& own_rows,
                           const ColumnCut& rows, const ColumnCut& columns) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = pass.team->columns_of_rows(own_rows, rows, columns, "heads of all rows");
  }
  if (!autograd::needed({own_rows})) return y;
  autograd::connect(
      "columns of rows backward", y, {own_rows}, [pass, rows, columns](const auto& grads) {
        return std::vector<at::Tensor>{
            pass.team->rows_of_columns(grads[0], columns, rows, "gradients of heads")};
      });
  return y;
}

at::Tensor rows_of_columns(const PassContext& pass, const at::Tensor& own_columns,
                           const ColumnCut& columns, const ColumnCut& rows) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = pass.team->rows_of_columns(own_columns, columns, rows, "rows of all heads");
  }
  if (!autograd::needed({own_columns})) return y;
  autograd::connect("rows of columns backward", y, {own_columns},
                    [pass, rows, columns](const auto& grads) {
                      return std::vector<at::Tensor>{
                          pass.team->columns_of_rows(grads[0], rows, columns, "gradients of rows")};
                    });
  return y;
}

at::Tensor exchanged_rows(const PassContext& pass, const at::Tensor& rows,
                          const std::vector<std::int64_t>& sent,
                          const std::vector<std::int64_t>& received) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = pass.team->exchanged_rows(rows, sent, received, "rows of experts");
  }
  if (!autograd::needed({rows})) return y;
  autograd::connect(
      "exchanged rows backward", y, {rows}, [pass, sent, received](const auto& grads) {
        return std::vector<at::Tensor>{
            pass.team->exchanged_rows(grads[0], received, sent, "gradients of experts' rows")};
      });
  return y;
}

}  // namespace rl::ops
