#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "rl/model/autograd.h"
#include "rl/model/ops.h"
#include "rl/model/padded_attention.h"
#include "rl/model/parallel.h"
#include "rl/model/products.h"

namespace rl::ops {
namespace {

using forward::AttentionShape;

// Queries of one strip whose scores are alive at a time: bounds the memory of backward to G * this
// * length a thread.
constexpr std::int64_t kBackwardQueries = 256;

// One key head of one sequence and the queries that share it: what is independent of everything
// else.
struct Strip {
  forward::RowSequence sequence;
  std::int64_t kv_head = 0;
};

// The tensors of an attention and their gradients, of rows [T, heads * D]. While strips are
// computed, k, v, dk and dv are those of tokens.
struct Tensors {
  at::Tensor q, k, v, y, log_normalizer;
  at::Tensor dy, dq, dk, dv;
};

// [count, D] of one key head.
at::Tensor key_rows(const at::Tensor& t, const Strip& strip, const AttentionShape& shape) {
  return t.narrow(0, strip.sequence.first_token, strip.sequence.tokens)
      .narrow(1, strip.kv_head * shape.head_dim, shape.head_dim);
}

// [count, G, D] of the queries of one key head, a view.
at::Tensor query_rows(const at::Tensor& t, const Strip& strip, const AttentionShape& shape,
                      std::int64_t first, std::int64_t count) {
  const std::int64_t group = shape.heads / shape.kv_heads;
  return t.narrow(0, strip.sequence.first_row + first, count)
      .narrow(1, strip.kv_head * group * shape.head_dim, group * shape.head_dim)
      .view({count, group, shape.head_dim});
}

// Gradients of softmax attention from its output and the log-normalizers; Dao et al. 2022,
// arXiv:2205.14135, appendix B.4. Probabilities are computed again. With P = exp(scale q k^T - lse)
// and D = sum(dy * y):
//
//     dv = P^T dy,  dS = P (dy v^T - D),  dq = scale dS k,  dk = scale dS^T q
void backward_strip(const AttentionShape& shape, const Tensors& t, const Strip& strip) {
  const std::int64_t group = shape.heads / shape.kv_heads;
  const at::Tensor k = key_rows(t.k, strip, shape).contiguous();
  const at::Tensor v = key_rows(t.v, strip, shape).contiguous();
  at::Tensor dk = at::zeros(k.sizes(), k.options());
  at::Tensor dv = at::zeros(v.sizes(), v.options());
  const at::Tensor order = at::arange(strip.sequence.tokens, k.options().dtype(at::kLong));
  for (std::int64_t first = 0; first < strip.sequence.rows(); first += kBackwardQueries) {
    const std::int64_t count = std::min(kBackwardQueries, strip.sequence.rows() - first);
    const std::int64_t position = strip.sequence.shared + first;
    const std::int64_t from = shape.first_key(position);
    const std::int64_t visible =
        position + count - from;  // keys that the block's queries see, from that one on
    const auto flat = [&](const at::Tensor& x) {
      return query_rows(x, strip, shape, first, count).reshape({count * group, shape.head_dim});
    };
    const at::Tensor q = flat(t.q);
    const at::Tensor dy = flat(t.dy);
    const at::Tensor delta = (dy * flat(t.y)).sum(1, /*keepdim=*/true);
    const at::Tensor lse = t.log_normalizer.narrow(0, strip.sequence.first_row + first, count)
                               .narrow(1, strip.kv_head * group, group)
                               .reshape({count * group, 1});
    const at::Tensor keys = k.narrow(0, from, visible);
    at::Tensor scores = product(q, keys.t()).mul_(shape.scale);  // [count * G, visible]
    at::Tensor slope;                                            // of the capped scores
    if (shape.softcap > 0.0F) {
      const at::Tensor bent = scores.div_(shape.softcap).tanh_();
      slope = 1 - bent * bent;
      scores = bent * shape.softcap;
    }
    at::Tensor p = scores.sub_(lse).exp_();
    const at::Tensor keys_at = order.narrow(0, from, visible).unsqueeze(0);
    const at::Tensor queries_at = order.narrow(0, position, count).unsqueeze(1);
    at::Tensor hidden = keys_at > queries_at;
    if (shape.window > 0) hidden.logical_or_(keys_at <= queries_at - shape.window);
    p.view({count, group, visible}).masked_fill_(hidden.unsqueeze(1), 0.0);
    multiply_into(dv.narrow(0, from, visible), p.t(), dy, /*adds=*/true);
    at::Tensor ds =
        product(dy, v.narrow(0, from, visible).t()).sub_(delta).mul_(p).mul_(shape.scale);
    if (slope.defined()) ds.mul_(slope);
    multiply_into(dk.narrow(0, from, visible), ds.t(), q, /*adds=*/true);
    query_rows(t.dq, strip, shape, first, count)
        .copy_(product(ds, keys).view({count, group, shape.head_dim}));
  }
  key_rows(t.dk, strip, shape).copy_(dk);
  key_rows(t.dv, strip, shape).copy_(dv);
}

// Gradients of tokens [*, O] summed over those that are one row, in their order.
at::Tensor by_row(const forward::Rows& rows, const at::Tensor& of_tokens) {
  if (!rows.shared()) return of_tokens;
  const at::Tensor of_rows = at::zeros({rows.count(), of_tokens.size(1)}, of_tokens.options());
  rows.row_sums().add(of_rows, of_tokens);
  return of_rows;
}

std::vector<at::Tensor> attention_backward(const PassContext& pass, const forward::Rows& rows,
                                           const AttentionShape& shape, Tensors t) {
  if (!pass.by_kernels(t.q)) {
    const forward::AttentionGradients found =
        rows.padded(shape, t.q.device()).backward({t.q, t.k, t.v}, {t.y, t.log_normalizer}, t.dy);
    return {found.dq, by_row(rows, found.dk), by_row(rows, found.dv)};
  }
  t.k = forward::by_token(pass, rows, t.k);
  t.v = forward::by_token(pass, rows, t.v);
  t.dq = at::empty(t.q.sizes(), t.q.options());
  t.dk = at::empty(t.k.sizes(), t.k.options());
  t.dv = at::empty(t.v.sizes(), t.v.options());
  std::vector<std::function<void()>> tasks;
  for (const forward::RowSequence& sequence : rows.sequences) {
    for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
      const Strip strip{sequence, head};
      tasks.emplace_back([&shape, &t, strip] { backward_strip(shape, t, strip); });
    }
  }
  run_tasks(pass.pool, tasks, t.q.device());
  return {t.dq, by_row(rows, t.dk), by_row(rows, t.dv)};
}

}  // namespace

at::Tensor rope(const PassContext& pass, const forward::RowsPtr& rows, const at::Tensor& x,
                std::int64_t heads, std::int64_t first) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = forward::rope(pass, *rows, x, heads, /*backwards=*/false, first);
  }
  if (!autograd::needed({x})) return y;
  autograd::connect("rope backward", y, {x}, [pass, rows, heads, first](const auto& grads) {
    return std::vector<at::Tensor>{
        forward::rope(pass, *rows, grads[0].contiguous(), heads, /*backwards=*/true, first)};
  });
  return y;
}

at::Tensor attention(const PassContext& pass, const forward::RowsPtr& rows,
                     const AttentionShape& shape, const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v) {
  forward::Attended out;
  {
    c10::AutoGradMode off(false);
    out = forward::attention(pass, *rows, shape, q, k, v);
  }
  if (!autograd::needed({q, k, v})) return out.y;
  autograd::connect("attention backward", out.y, {q, k, v},
                    [pass, rows, shape,
                     kept = Tensors{q.detach(),
                                    k.detach(),
                                    v.detach(),
                                    out.y.detach(),
                                    out.log_normalizer,
                                    {},
                                    {},
                                    {},
                                    {}}](const auto& grads) {
                      Tensors tensors = kept;
                      tensors.dy = grads[0].contiguous();
                      return attention_backward(pass, *rows, shape, std::move(tensors));
                    });
  return out.y;
}

}  // namespace rl::ops
