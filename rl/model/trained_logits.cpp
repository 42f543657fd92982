#include "rl/model/trained_logits.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tanh.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "rl/mesh/column_cut.h"
#include "rl/model/autograd.h"
#include "rl/model/pass_team.h"

namespace rl {
namespace {

// A stretch of rows, and those of it whose logits the rank has.
struct Stretch {
  std::int64_t first = 0;
  std::int64_t rows = 0;
  std::shared_ptr<const ColumnCut> dealt;  // null: all of them
  int rank = 0;

  std::int64_t first_own() const { return dealt ? dealt->first(rank) : 0; }
  std::int64_t own() const { return dealt ? dealt->size(rank) : rows; }
};

std::vector<Stretch> stretches(const PassContext& pass, const OutputLayer& head,
                               std::int64_t rows) {
  const bool shared = head.layer.cut || head.layer.dealt;
  std::vector<Stretch> all;
  for (std::int64_t first = 0; first < rows; first += kLogitRows) {
    Stretch& stretch = all.emplace_back();
    stretch.first = first;
    stretch.rows = std::min(kLogitRows, rows - first);
    if (!shared) continue;
    stretch.dealt = ops::rows_of_ranks(stretch.rows, pass.team->size());
    stretch.rank = pass.team->rank();
  }
  return all;
}

at::Tensor capped(const at::Tensor& logits, double softcap) {
  return softcap == 0.0 ? logits : at::tanh(logits / softcap) * softcap;
}

// The rank's rows of what every rank has whole, and whose gradient every rank needs whole.
at::Tensor own_rows(const PassTeam& team, const at::Tensor& all, const ColumnCut& rows) {
  at::Tensor own = team.own_rows(all.detach(), rows).clone();
  if (!autograd::needed({all})) return own;
  autograd::connect("own rows backward", own, {all}, [&team, rows](const auto& grads) {
    return std::vector<at::Tensor>{team.all_rows(grads[0], rows, "gradients of own rows")};
  });
  return own;
}

// Logits of the rank's own rows, from all of the stretch's x.
at::Tensor own_logits(const PassContext& pass, const at::Tensor& x, const OutputLayer& head,
                      const Stretch& stretch) {
  if (!stretch.dealt) return trained_logits(pass, x, head);
  if (head.layer.cut) {
    const at::Tensor columns =
        ops::linear(pass, x, std::span(&head.layer, 1), {.own_outputs = true}).front();
    return capped(ops::rows_of_columns(pass, columns, *head.layer.cut, *stretch.dealt),
                  head.softcap);
  }
  const at::Tensor own = own_rows(*pass.team, x, *stretch.dealt);
  return capped(ops::linear(pass, own, head.layer, {.rows = stretch.dealt}), head.softcap);
}

}  // namespace

at::Tensor trained_logits(const PassContext& pass, const at::Tensor& x, const OutputLayer& head) {
  return capped(ops::linear(pass, x, head.layer), head.softcap);
}

at::Tensor numbers_of_logits(const PassContext& pass, const at::Tensor& x, const OutputLayer& head,
                             const OfLogits& numbers) {
  std::vector<at::Tensor> parts;
  {
    c10::AutoGradMode off(false);
    for (const Stretch& stretch : stretches(pass, head, x.size(0))) {
      const at::Tensor rows = x.detach().narrow(0, stretch.first, stretch.rows);
      const at::Tensor own =
          numbers(own_logits(pass, rows, head, stretch), stretch.first + stretch.first_own());
      parts.push_back(stretch.dealt ? pass.team->all_rows(own, *stretch.dealt, "numbers of logits")
                                    : own);
    }
  }
  at::Tensor all = at::cat(parts);
  if (!autograd::needed({x})) return all;
  autograd::connect(
      "numbers of logits backward", all, {x},
      [pass, x = x.detach(), head, numbers](const std::vector<at::Tensor>& grads) {
        const at::Tensor dx = at::empty(x.sizes(), x.options());
        c10::AutoGradMode on(true);
        for (const Stretch& stretch : stretches(pass, head, x.size(0))) {
          const at::Tensor rows =
              x.narrow(0, stretch.first, stretch.rows).detach().set_requires_grad(true);
          const std::int64_t first = stretch.first + stretch.first_own();
          const at::Tensor own = numbers(own_logits(pass, rows, head, stretch), first);
          autograd::backward({own}, {grads[0].narrow(0, first, stretch.own())});
          dx.narrow(0, stretch.first, stretch.rows).copy_(rows.grad());
        }
        return std::vector<at::Tensor>{dx};
      });
  return all;
}

}  // namespace rl
