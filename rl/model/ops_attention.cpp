#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "rl/model/autograd.h"
#include "rl/model/ops.h"

namespace rl::ops {
namespace {

using forward::AttentionShape;

// Queries of one sequence whose scores are alive at a time: bounds the memory of backward to heads * this * length.
constexpr std::int64_t kBackwardQueries = 256;

// What one sequence needs on the way back; k and v as [K, length, D].
struct Keys {
  at::Tensor k, v, dk, dv;
};

// Rows [begin, begin + count) of t [T, K * G * D] as [K, G * count, D]: the queries that share a key head side by side.
at::Tensor by_key_head(const at::Tensor& t, std::int64_t begin, std::int64_t count, const AttentionShape& shape) {
  const std::int64_t group = t.size(1) / shape.kv_heads / shape.head_dim;
  return t.narrow(0, begin, count)
      .view({count, shape.kv_heads, group, shape.head_dim})
      .permute({1, 2, 0, 3})
      .reshape({shape.kv_heads, group * count, shape.head_dim});
}

void store(const at::Tensor& grouped, const at::Tensor& into, std::int64_t begin, std::int64_t count, const AttentionShape& shape) {
  const std::int64_t group = into.size(1) / shape.kv_heads / shape.head_dim;
  into.narrow(0, begin, count)
      .view({count, shape.kv_heads, group, shape.head_dim})
      .copy_(grouped.view({shape.kv_heads, group, count, shape.head_dim}).permute({2, 0, 1, 3}));
}

// Gradients of softmax attention from its output and the log-normalizers, probabilities computed again (the recomputation of
// Dao et al. 2022, arXiv:2205.14135, appendix B.4): with P = exp(scale q k^T - lse) and D = sum(dy * y),
// dv = P^T dy, dS = P (dy v^T - D), dq = scale dS k, dk = scale dS^T q.
at::Tensor backward_block(const AttentionShape& shape, Keys& keys, const at::Tensor& q, const at::Tensor& dy, const at::Tensor& delta,
                          const at::Tensor& normalizer, const at::Tensor& hidden, std::int64_t visible) {
  const at::Tensor k = keys.k.narrow(1, 0, visible);
  const at::Tensor v = keys.v.narrow(1, 0, visible);
  at::Tensor p = at::bmm(q, k.transpose(1, 2)).mul_(shape.scale()).sub_(normalizer).exp_();  // [K, G * count, visible]
  p.view({shape.kv_heads, -1, hidden.size(0), visible}).masked_fill_(hidden, 0.0);
  keys.dv.narrow(1, 0, visible).baddbmm_(p.transpose(1, 2), dy);
  const at::Tensor ds = at::bmm(dy, v.transpose(1, 2)).sub_(delta).mul_(p).mul_(shape.scale());
  keys.dk.narrow(1, 0, visible).baddbmm_(ds.transpose(1, 2), q);
  return at::bmm(ds, k);
}

std::vector<at::Tensor> attention_backward(const std::vector<std::int64_t>& cu_seqlens, const AttentionShape& shape,
                                           const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& y,
                                           const at::Tensor& log_normalizer, const at::Tensor& dy) {
  const std::int64_t group = shape.heads / shape.kv_heads;
  at::Tensor dq = at::empty(q.sizes(), q.options());
  at::Tensor dk = at::empty(k.sizes(), k.options());
  at::Tensor dv = at::empty(v.sizes(), v.options());
  const at::Tensor delta = (dy * y).view({-1, shape.heads, shape.head_dim}).sum(2);  // [T, H]
  for (std::size_t b = 0; b + 1 < cu_seqlens.size(); ++b) {
    const std::int64_t begin = cu_seqlens[b];
    const std::int64_t length = cu_seqlens[b + 1] - begin;
    Keys keys{by_key_head(k, begin, length, shape), by_key_head(v, begin, length, shape), {}, {}};
    keys.dk = at::zeros(keys.k.sizes(), k.options());
    keys.dv = at::zeros(keys.v.sizes(), v.options());
    const at::Tensor order = at::arange(length, q.options().dtype(at::kLong));
    for (std::int64_t first = 0; first < length; first += kBackwardQueries) {
      const std::int64_t count = std::min(kBackwardQueries, length - first);
      const std::int64_t visible = first + count;
      const at::Tensor hidden = order.narrow(0, 0, visible).unsqueeze(0) > order.narrow(0, first, count).unsqueeze(1);
      const auto per_query = [&](const at::Tensor& t) {  // [T, H] -> [K, G * count, 1]
        return t.narrow(0, begin + first, count).t().reshape({shape.kv_heads, group * count, 1});
      };
      const at::Tensor dq_block =
          backward_block(shape, keys, by_key_head(q, begin + first, count, shape), by_key_head(dy, begin + first, count, shape),
                         per_query(delta), per_query(log_normalizer), hidden, visible);
      store(dq_block, dq, begin + first, count, shape);
    }
    store(keys.dk, dk, begin, length, shape);
    store(keys.dv, dv, begin, length, shape);
  }
  return {dq, dk, dv};
}

}  // namespace

at::Tensor rope(kernel::ThreadPool& pool, const forward::RowsPtr& rows, const at::Tensor& x, std::int64_t heads) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = forward::rope(pool, *rows, x, heads);
  }
  if (!autograd::needed({x})) return y;
  autograd::connect(y, {x}, [&pool, rows, heads](const auto& grads) {
    return std::vector<at::Tensor>{forward::rope(pool, *rows, grads[0].contiguous(), heads, /*backwards=*/true)};
  });
  return y;
}

at::Tensor attention(kernel::ThreadPool& pool, const forward::RowsPtr& rows, const AttentionShape& shape, const at::Tensor& q,
                     const at::Tensor& k, const at::Tensor& v) {
  forward::Attended out;
  {
    c10::AutoGradMode off(false);
    out = forward::attention(pool, *rows, shape, q, k, v);
  }
  if (!autograd::needed({q, k, v})) return out.y;
  autograd::connect(out.y, {q, k, v},
                    [rows, shape, q = q.detach(), k = k.detach(), v = v.detach(), y = out.y.detach(),
                     log_normalizer = out.log_normalizer](const auto& grads) {
                      return attention_backward(rows->cu_seqlens, shape, q, k, v, y, log_normalizer, grads[0].contiguous());
                    });
  return out.y;
}

}  // namespace rl::ops
