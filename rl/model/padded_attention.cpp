#include "rl/model/padded_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "runtime/core/check.h"

// B pieces, Q queries and N keys of each, padded; H heads, K key heads, G queries of a key head, D
// head dimension.
namespace rl::forward {

// Writes the tables on the host.
class PaddedAttention::Builder {
 public:
  Builder(const RowLayout& rows, const AttentionShape& shape)
      : rows_(rows), kv_heads_(shape.kv_heads), slot_of_row_(rows.rows * shape.kv_heads) {}

  Batch add(const AttentionBatch& plan) {
    Batch batch{.pieces = plan.count(), .queries = plan.queries, .keys = plan.keys};
    batch.first_query_slot = query_slots_;
    batch.row_of_query_slot = begin();
    for (const AttentionPiece& piece : plan.pieces) add_queries(piece, plan.queries);
    end(batch.row_of_query_slot);
    batch.row_of_key_slot = begin();
    for (const AttentionPiece& piece : plan.pieces) add_keys(piece, plan.keys);
    end(batch.row_of_key_slot);
    batch.last_key = begin();
    for (const AttentionPiece& piece : plan.pieces)
      for (std::int64_t i = 0; i < plan.queries; ++i)
        push(i < piece.queries ? piece.first_query + i - piece.first_key : -1);
    end(batch.last_key);
    batch.tokens = begin();
    for (const AttentionPiece& piece : plan.pieces)
      for (std::int64_t i = 0; i < piece.keys * kv_heads_; ++i)
        push((sequence(piece).first_token + piece.first_key) * kv_heads_ + i);
    end(batch.tokens);
    batch.slot_of_token = begin();
    for (std::int64_t b = 0; b < plan.count(); ++b)
      for (std::int64_t i = 0; i < plan.pieces[static_cast<std::size_t>(b)].keys; ++i)
        for (std::int64_t head = 0; head < kv_heads_; ++head)
          push((b * kv_heads_ + head) * plan.keys + i);
    end(batch.slot_of_token);
    return batch;
  }

  Range add_slots_of_rows() {
    Range range = begin();
    tables_.insert(tables_.end(), slot_of_row_.begin(), slot_of_row_.end());
    end(range);
    return range;
  }

  std::int64_t query_slots() const { return query_slots_; }

  at::Tensor on(at::Device device) {
    return at::from_blob(tables_.data(), {static_cast<std::int64_t>(tables_.size())}, at::kInt)
        .to(device, at::kInt, /*non_blocking=*/false, /*copy=*/true);
  }

 private:
  const RowSequence& sequence(const AttentionPiece& piece) const {
    return rows_.sequences[static_cast<std::size_t>(piece.sequence)];
  }
  Range begin() const { return {.first = static_cast<std::int64_t>(tables_.size())}; }
  void end(Range& range) const {
    range.count = static_cast<std::int64_t>(tables_.size()) - range.first;
  }
  void push(std::int64_t value) { tables_.push_back(static_cast<std::int32_t>(value)); }

  // Padding repeats a row of the same sequence: what is not finite in one stays out of others.
  void add_queries(const AttentionPiece& piece, std::int64_t padded) {
    const RowSequence& of = sequence(piece);
    const std::int64_t first = of.first_row + piece.first_query - of.shared;
    for (std::int64_t head = 0; head < kv_heads_; ++head) {
      for (std::int64_t i = 0; i < padded; ++i, ++query_slots_) {
        const std::int64_t row = (first + std::min(i, piece.queries - 1)) * kv_heads_ + head;
        push(row);
        if (i < piece.queries)
          slot_of_row_[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(query_slots_);
      }
    }
  }
  void add_keys(const AttentionPiece& piece, std::int64_t padded) {
    const std::int64_t first = sequence(piece).first_token + piece.first_key;
    for (std::int64_t head = 0; head < kv_heads_; ++head)
      for (std::int64_t i = 0; i < padded; ++i)
        push(rows_.row(first + std::min(i, piece.keys - 1)) * kv_heads_ + head);
  }

  const RowLayout rows_;
  const std::int64_t kv_heads_;
  std::int64_t query_slots_ = 0;
  std::vector<std::int32_t> slot_of_row_;
  std::vector<std::int32_t> tables_;
};

PaddedAttention::PaddedAttention(const RowLayout& rows, const AttentionShape& shape,
                                 at::Device device, const AttentionLimits& limits)
    : shape_(shape),
      group_(shape.heads / shape.kv_heads),
      rows_(rows.rows * shape.kv_heads),
      tokens_(rows.tokens() * shape.kv_heads) {
  Builder build(rows, shape);
  std::int64_t cells = 0;
  for (const AttentionBatch& plan : plan_attention(rows.sequences, shape, limits)) {
    batches_.push_back(build.add(plan));
    cells += plan.count() * plan.queries * plan.keys;
  }
  slot_of_row_ = build.add_slots_of_rows();
  query_slots_ = build.query_slots();
  CHECK(query_slots_ <= std::numeric_limits<std::int32_t>::max());
  CHECK(tokens_ <= std::numeric_limits<std::int32_t>::max());
  tables_ = build.on(device);
  if (cells > kHiddenBytesMax) return;
  for (Batch& batch : batches_) batch.hidden = hidden(batch);
}

// [B, 1, Q, 1, N]; padding is hidden too: keys of it come after every query, and its queries see
// none.
at::Tensor PaddedAttention::hidden(const Batch& batch) const {
  if (batch.hidden.defined()) return batch.hidden;
  const at::Tensor last = table(batch.last_key).view({batch.pieces, 1, batch.queries, 1, 1});
  const at::Tensor keys_at = at::arange(batch.keys, last.options());
  at::Tensor hidden = keys_at > last;
  if (shape_.window > 0) hidden.logical_or_(keys_at <= last - shape_.window);
  return hidden;
}

// Rows [T, H * O] as [B * K, Q * G, O].
at::Tensor PaddedAttention::queries_of(const Batch& batch, const at::Tensor& t) const {
  return t.view({rows_, -1})
      .index_select(0, table(batch.row_of_query_slot))
      .view({batch.pieces * shape_.kv_heads, batch.queries * group_, -1});
}

// Rows [T, K * D] as [B * K, N, D].
at::Tensor PaddedAttention::keys_of(const Batch& batch, const at::Tensor& t) const {
  return t.view({rows_, -1})
      .index_select(0, table(batch.row_of_key_slot))
      .view({batch.pieces * shape_.kv_heads, batch.keys, -1});
}

// Those of a batch in what is padded for all, [slots, G * O], as [B * K, Q * G, O].
at::Tensor PaddedAttention::slots(const Batch& batch, const at::Tensor& padded) const {
  return padded.narrow(0, batch.first_query_slot, batch.pieces * shape_.kv_heads * batch.queries)
      .view({batch.pieces * shape_.kv_heads, batch.queries * group_, -1});
}

// [slots, G * O] as rows [T, H * O].
at::Tensor PaddedAttention::of_rows(const at::Tensor& padded) const {
  return padded.index_select(0, table(slot_of_row_)).view({rows_ / shape_.kv_heads, -1});
}

// [B * K, Q * G, N], before a cap's own scale: the tangent of what is capped.
at::Tensor PaddedAttention::scores(const at::Tensor& q, const at::Tensor& k) const {
  const bool capped = shape_.softcap > 0.0F;
  at::Tensor scores = at::empty({q.size(0), q.size(1), k.size(1)}, q.options());
  scores.baddbmm_(q, k.transpose(1, 2), 0.0, capped ? shape_.scale / shape_.softcap : shape_.scale);
  return capped ? scores.tanh_() : scores;
}

void PaddedAttention::hide(const Batch& batch, const at::Tensor& t, float value) const {
  t.view({batch.pieces, shape_.kv_heads, batch.queries, group_, batch.keys})
      .masked_fill_(hidden(batch), value);
}

Attended PaddedAttention::forward(const AttentionInputs& in) const {
  if (rows_ == 0) return {at::empty_like(in.q), at::empty({0, shape_.heads}, in.q.options())};
  const at::Tensor y = at::empty({query_slots_, group_ * shape_.head_dim}, in.q.options());
  const at::Tensor log_normalizer = at::empty({query_slots_, group_}, in.q.options());
  for (const Batch& batch : batches_) {
    at::Tensor s = scores(queries_of(batch, in.q), keys_of(batch, in.k));
    if (shape_.softcap > 0.0F) s.mul_(shape_.softcap);
    hide(batch, s, -std::numeric_limits<float>::infinity());
    const at::Tensor p = at::softmax(s, 2);
    // The largest probability is exp(largest score - log-normalizer), and no less than 1 / N.
    at::Tensor normalizer_slots = slots(batch, log_normalizer);
    at::sub_out(normalizer_slots, s.amax(2, /*keepdim=*/true), p.amax(2, /*keepdim=*/true).log_());
    at::Tensor y_slots = slots(batch, y);
    at::bmm_out(y_slots, p, keys_of(batch, in.v));
  }
  return {of_rows(y).view(in.q.sizes()), of_rows(log_normalizer)};
}

// Dao et al. 2022, arXiv:2205.14135, appendix B.4. With P = exp(scale q k^T - log-normalizer) and
// delta = sum(dy * y):
//
//     dv = P^T dy,  dS = P (dy v^T - delta),  dq = scale dS k,  dk = scale dS^T q
AttentionGradients PaddedAttention::backward(const AttentionInputs& in, const Attended& out,
                                             const at::Tensor& dy) const {
  if (rows_ == 0) return {at::empty_like(in.q), at::empty_like(in.k), at::empty_like(in.v)};
  const at::Tensor delta = (dy * out.y).view({-1, shape_.head_dim}).sum(1);
  const at::Tensor dq = at::empty({query_slots_, group_ * shape_.head_dim}, in.q.options());
  const bool at_once = batches_.size() == 1 && batches_[0].tokens.count == tokens_;
  at::Tensor d_tokens =  // dk and dv
      at_once ? at::Tensor() : at::zeros({2, tokens_, shape_.head_dim}, in.k.options());
  for (const Batch& batch : batches_) {
    const at::Tensor q = queries_of(batch, in.q), k = keys_of(batch, in.k),
                     dy_slots = queries_of(batch, dy);
    const at::Tensor s = scores(q, k);
    at::Tensor p = shape_.softcap > 0.0F ? s * shape_.softcap : s;
    p.sub_(queries_of(batch, out.log_normalizer)).exp_();
    hide(batch, p, 0.0F);
    at::Tensor ds = at::bmm(dy_slots, keys_of(batch, in.v).transpose(1, 2))
                        .sub_(queries_of(batch, delta))
                        .mul_(p);
    if (shape_.softcap > 0.0F) ds = at::tanh_backward(ds, s);
    slots(batch, dq).baddbmm_(ds, k, 0.0, shape_.scale);
    const at::Tensor d_keys = at::empty({2, k.size(0), k.size(1), k.size(2)}, k.options());
    d_keys[0].baddbmm_(ds.transpose(1, 2), q, 0.0, shape_.scale);
    at::Tensor dv = d_keys[1];
    at::bmm_out(dv, p.transpose(1, 2), dy_slots);
    const at::Tensor of_tokens =
        d_keys.view({2, -1, shape_.head_dim}).index_select(1, table(batch.slot_of_token));
    if (at_once)
      d_tokens = of_tokens;
    else
      d_tokens.index_add_(1, table(batch.tokens), of_tokens);  // no token twice: in order
  }
  const std::vector<std::int64_t> shape = {tokens_ / shape_.kv_heads, in.k.size(1)};
  return {of_rows(dq).view(in.q.sizes()), d_tokens[0].view(shape), d_tokens[1].view(shape)};
}

}  // namespace rl::forward
