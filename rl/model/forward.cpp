#include "rl/model/forward.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <map>

#include "rl/kernel/kernel.h"
#include "rl/model/padded_attention.h"
#include "rl/model/parallel.h"
#include "rl/model/quantized_weights.h"
#include "rl/model/rope_on_device.h"
#include "rl/model/shared_beginnings.h"
#include "rl/profile/recorder.h"
#include "runtime/core/check.h"

namespace rl::forward {
namespace {

at::Tensor like(const at::Tensor& x, at::IntArrayRef shape) {
  return at::empty(shape, x.options());
}

// A copy of host integers or floats on `device`.
template <class T>
at::Tensor to_device(std::span<const T> host, at::ScalarType type, at::Device device) {
  return at::from_blob(const_cast<T*>(host.data()), {static_cast<std::int64_t>(host.size())},
                       at::TensorOptions().dtype(type))
      .to(device, type, /*non_blocking=*/false, /*copy=*/true);
}

// On a CPU rows are cut by their number alone, and one thread computes each block. The bits are
// thus the same on any number of threads.
std::vector<at::Tensor> linear_bf16(const PassContext& pass, const at::Tensor& x,
                                    std::span<const Linear> layers) {
  constexpr std::int64_t kRowsLeast = 64;
  const at::Tensor factor = pass.as_factor(x);
  const std::vector<Block> blocks = cut(x.size(0), kRowsLeast, x.device());
  std::vector<at::Tensor> outputs;
  for (const Linear& layer : layers) {
    const at::Tensor weight = pass.as_factor(layer.weight).t();
    at::Tensor y = like(x, {x.size(0), weight.size(1)});
    for_blocks(pass.pool, blocks, x.device(), [&](const Block& block) {
      at::Tensor rows = y.narrow(0, block.first, block.count);
      rows.copy_(at::mm(factor.narrow(0, block.first, block.count), weight));
      if (layer.bias.defined()) rows.add_(layer.bias);
    });
    outputs.push_back(std::move(y));
  }
  return outputs;
}

// ATen's version of kernel::rope: each half times the cosines, plus the other half times the sines.
at::Tensor rope_aten(const Rows& rows, const at::Tensor& x, std::int64_t heads, bool backwards,
                     std::int64_t first) {
  const std::int64_t half = rows.rope->half;
  const auto [all_cos, all_sin] = rows.angles(x.device());
  const at::Tensor cos = all_cos.narrow(0, first, x.size(0));
  const at::Tensor sin = all_sin.narrow(0, first, x.size(0));
  const at::Tensor whole = x.view({x.size(0), heads, -1});
  const at::Tensor turning = whole.narrow(2, 0, 2 * half);
  at::Tensor y = (turning * cos).addcmul_(at::roll(turning, half, 2), sin, backwards ? -1 : 1);
  const std::int64_t rest = whole.size(2) - 2 * half;
  if (rest > 0) y = at::cat({y, whole.narrow(2, 2 * half, rest)}, 2);
  return y.view(x.sizes());
}

}  // namespace

Rows::Rows(const PackedBatch& batch, const Rope& rotary, bool share) {
  const auto length_for_angles = [&](std::size_t b) {
    const std::int64_t tokens = batch.cu_seqlens[b + 1] - batch.cu_seqlens[b];
    return batch.rope_lengths.empty() ? tokens : std::max(tokens, batch.rope_lengths[b]);
  };
  std::vector<std::int64_t> shared(static_cast<std::size_t>(batch.sequences()), 0);
  if (share)
    shared = shared_beginnings(batch, [&](std::size_t a, std::size_t b) {
      return rotary.stretch_of(length_for_angles(a)) == rotary.stretch_of(length_for_angles(b));
    });
  const bool sharing =
      std::any_of(shared.begin(), shared.end(), [](std::int64_t n) { return n > 0; });
  std::vector<std::int64_t> lengths;
  for (std::size_t b = 0; b < shared.size(); ++b) {
    const RowSequence sequence{batch.cu_seqlens[b], batch.cu_seqlens[b + 1] - batch.cu_seqlens[b],
                               count(), shared[b]};
    for (std::int64_t i = sequence.shared; i < sequence.tokens; ++i) {
      ids.push_back(batch.ids[static_cast<std::size_t>(sequence.first_token + i)]);
      positions.push_back(static_cast<std::int32_t>(i));
    }
    lengths.insert(lengths.end(), static_cast<std::size_t>(sequence.rows()), length_for_angles(b));
    for (std::int64_t i = 0; sharing && i < sequence.tokens; ++i) {
      const std::int64_t own = sequence.first_row + i - sequence.shared;
      row_of.push_back(static_cast<std::int32_t>(
          i < sequence.shared ? row(sequences.back().first_token + i) : own));
    }
    sequences.push_back(sequence);
  }
  find_angles(lengths, rotary);
}

Rows::Rows(std::vector<std::int32_t> ids_of, std::vector<std::int32_t> positions_of,
           std::span<const std::int64_t> lengths, const Rope& rotary)
    : ids(std::move(ids_of)), positions(std::move(positions_of)) {
  CHECK(ids.size() == positions.size() && ids.size() == lengths.size());
  find_angles(lengths, rotary);
}

const RowSums& Rows::row_sums() const {
  if (!row_sums_) row_sums_.emplace(std::vector<std::int64_t>(row_of.begin(), row_of.end()));
  return *row_sums_;
}

void Rows::find_angles(std::span<const std::int64_t> lengths, const Rope& rotary) {
  std::int32_t last = 0;
  std::map<std::int64_t, std::int64_t> first_row;  // of each stretch's tables
  for (std::size_t i = 0; i < positions.size(); ++i) {
    last = std::max(last, positions[i]);
    first_row.emplace(rotary.stretch_of(lengths[i]), 0);
  }
  rope_rows = positions;
  if (first_row.size() <= 1) {
    rope = rotary.tables(last + 1, first_row.empty() ? 0 : first_row.begin()->first);
    return;
  }
  auto all = std::make_shared<RopeTables>();
  for (auto& [stretch, first] : first_row) {
    const auto tables = rotary.tables(last + 1, stretch);
    first = all->positions;
    all->half = tables->half;
    all->positions += tables->positions;
    all->cos.insert(all->cos.end(), tables->cos.begin(), tables->cos.end());
    all->sin.insert(all->sin.end(), tables->sin.begin(), tables->sin.end());
  }
  for (std::size_t i = 0; i < positions.size(); ++i)
    rope_rows[i] += static_cast<std::int32_t>(first_row.at(rotary.stretch_of(lengths[i])));
  rope = std::move(all);
}

std::pair<at::Tensor, at::Tensor> Rows::angles(at::Device device) const {
  if (cos_.defined() && cos_.device() == device) return {cos_, sin_};
  const at::Tensor at_rows = to_device<std::int32_t>(rope_rows, at::kInt, device);
  const auto on_device = device_tables(rope, device);
  const at::Tensor cos = on_device->cos.index_select(0, at_rows).unsqueeze(1);
  const at::Tensor sin = on_device->sin.index_select(0, at_rows).unsqueeze(1);
  cos_ = at::cat({cos, cos}, 2);
  sin_ = at::cat({sin.neg(), sin}, 2);
  return {cos_, sin_};
}

const PaddedAttention& Rows::padded(const AttentionShape& shape, at::Device device) const {
  for (const auto& one : padded_)
    if (one->serves(shape, device)) return *one;
  padded_.push_back(std::make_shared<const PaddedAttention>(layout(), shape, device));
  return *padded_.back();
}

at::Tensor embedding(const PassContext& pass, const at::Tensor& table,
                     std::span<const std::int32_t> ids) {
  const profile::Span span("gather rows");
  if (!pass.by_kernels(table))
    return table.index_select(0, to_device<std::int32_t>(ids, at::kInt, table.device()));
  at::Tensor y = like(table, {static_cast<std::int64_t>(ids.size()), table.size(1)});
  kernel::gather_rows(pass.pool, table.const_data_ptr<float>(), table.size(1), ids.data(),
                      y.size(0), y.mutable_data_ptr<float>());
  return y;
}

std::vector<at::Tensor> linear(const PassContext& pass, const at::Tensor& x,
                               std::span<const Linear> layers) {
  const profile::Span span("linear");
  std::vector<at::Tensor> outputs;
  if (pass.options.bf16) return linear_bf16(pass, x, layers);
  if (!pass.by_kernels(x)) {
    for (const Linear& layer : layers)
      outputs.push_back(layer.bias.defined() ? at::addmm(layer.bias, x, layer.weight.t())
                                             : at::mm(x, layer.weight.t()));
    return outputs;
  }
  const auto quantized = [&](const at::Tensor& weight, std::int64_t in) {
    return pass.options.quantized == nullptr
               ? kernel::Int8Weight{}
               : pass.options.quantized->find(weight.const_data_ptr<float>(), weight.size(0), in);
  };
  std::vector<kernel::LinearOutput> products;
  for (const Linear& layer : layers) {
    outputs.push_back(like(x, {x.size(0), layer.weight.size(0)}));
    products.push_back({.weight = layer.weight.const_data_ptr<float>(),
                        .int8 = quantized(layer.weight, x.size(1)),
                        .bias = layer.bias.defined() ? layer.bias.const_data_ptr<float>() : nullptr,
                        .out = layer.weight.size(0),
                        .y = outputs.back().mutable_data_ptr<float>()});
  }
  if (x.size(0) > 0)
    kernel::linear(pass.pool, x.const_data_ptr<float>(), x.size(0), x.size(1), 0, products);
  return outputs;
}

at::Tensor linear(const PassContext& pass, const at::Tensor& x, const Linear& layer) {
  return linear(pass, x, std::span(&layer, 1)).front();
}

Normed rms_norm(const PassContext& pass, const at::Tensor& x, const at::Tensor& weight, float eps) {
  const profile::Span span("norm");
  if (!pass.by_kernels(x)) {
    auto [y, inverse] = at::_fused_rms_norm(x, x.size(1), weight, eps);
    return {std::move(y), inverse.view({x.size(0)})};
  }
  Normed out{like(x, x.sizes()), like(x, {x.size(0)})};
  kernel::rms_norm(pass.pool, x.const_data_ptr<float>(), x.size(0), x.size(1),
                   weight.const_data_ptr<float>(), eps, out.y.mutable_data_ptr<float>(),
                   out.moments.mutable_data_ptr<float>());
  return out;
}

Normed layer_norm(const PassContext& pass, const at::Tensor& x, const at::Tensor& weight,
                  const at::Tensor& bias, float eps) {
  const profile::Span span("norm");
  if (!pass.by_kernels(x)) {
    const at::Tensor mean = x.mean(1);
    const at::Tensor inverse = at::rsqrt((x - mean.unsqueeze(1)).square().mean(1) + eps);
    return {(x - mean.unsqueeze(1)) * inverse.unsqueeze(1) * weight + bias,
            at::stack({mean, inverse}, 1)};
  }
  Normed out{like(x, x.sizes()), like(x, {x.size(0), 2})};
  kernel::layer_norm(pass.pool, x.const_data_ptr<float>(), x.size(0), x.size(1),
                     weight.const_data_ptr<float>(), bias.const_data_ptr<float>(), eps,
                     out.y.mutable_data_ptr<float>(), out.moments.mutable_data_ptr<float>());
  return out;
}

at::Tensor activate(const PassContext& pass, Activation activation, const at::Tensor& gate,
                    const at::Tensor& up) {
  const profile::Span span("activate");
  if (!pass.by_kernels(gate)) {
    at::Tensor y;
    switch (activation) {
      case Activation::kSilu: y = at::silu(gate); break;
      case Activation::kGelu: y = at::gelu(gate); break;
      case Activation::kGeluTanh: y = at::gelu(gate, "tanh"); break;
      case Activation::kRelu: y = at::relu(gate); break;
      case Activation::kSigmoid: y = at::sigmoid(gate); break;
    }
    return up.defined() ? y.mul_(up) : y;
  }
  at::Tensor y = like(gate, gate.sizes());
  kernel::activate(pass.pool, activation, gate.const_data_ptr<float>(),
                   up.defined() ? up.const_data_ptr<float>() : nullptr, gate.numel(),
                   y.mutable_data_ptr<float>());
  return y;
}

void softcap_(const PassContext& pass, const at::Tensor& x, float cap) {
  if (cap == 0.0F) return;
  if (!pass.by_kernels(x)) {
    x.div_(cap).tanh_().mul_(cap);
    return;
  }
  float* values = x.mutable_data_ptr<float>();
  kernel::softcap(pass.pool, values, x.numel(), cap, values);
}

at::Tensor add(const PassContext& pass, const at::Tensor& a, const at::Tensor& b) {
  const profile::Span span("add");
  if (!pass.by_kernels(a)) return a + b;
  at::Tensor y = like(a, a.sizes());
  kernel::add(pass.pool, a.const_data_ptr<float>(), b.const_data_ptr<float>(), a.numel(),
              y.mutable_data_ptr<float>());
  return y;
}

at::Tensor rope(const PassContext& pass, const Rows& rows, const at::Tensor& x, std::int64_t heads,
                bool backwards, std::int64_t first) {
  const profile::Span span("rope");
  if (!pass.by_kernels(x)) return rope_aten(rows, x, heads, backwards, first);
  const std::int64_t head_dim = x.size(1) / heads;
  const kernel::RopeShape shape{.heads = heads, .head_dim = head_dim, .half = rows.rope->half};
  std::vector<float> negated;
  const float* sin = rows.rope->sin.data();
  if (backwards) {
    negated.resize(rows.rope->sin.size());
    std::transform(rows.rope->sin.begin(), rows.rope->sin.end(), negated.begin(),
                   [](float s) { return -s; });
    sin = negated.data();
  }
  at::Tensor y = like(x, x.sizes());
  kernel::rope(pass.pool, shape, x.const_data_ptr<float>(), x.size(0), x.size(1),
               rows.rope_rows.data() + first, rows.rope->cos.data(), sin,
               y.mutable_data_ptr<float>());
  return y;
}

at::Tensor by_token(const PassContext& pass, const Rows& rows, const at::Tensor& x) {
  return rows.shared() ? embedding(pass, x, rows.row_of) : x;
}

Attended attention(const PassContext& pass, const Rows& rows, const AttentionShape& shape,
                   const at::Tensor& q, const at::Tensor& k_of_rows, const at::Tensor& v_of_rows) {
  const profile::Span span("attention");
  if (!pass.by_kernels(q)) return rows.padded(shape, q.device()).forward({q, k_of_rows, v_of_rows});
  const at::Tensor k = by_token(pass, rows, k_of_rows);
  const at::Tensor v = by_token(pass, rows, v_of_rows);
  std::vector<kernel::AttentionSequence> sequences;
  for (const RowSequence& sequence : rows.sequences) {
    sequences.push_back({.keys = k.const_data_ptr<float>() + sequence.first_token * k.size(1),
                         .values = v.const_data_ptr<float>() + sequence.first_token * v.size(1),
                         .token_stride = k.size(1),
                         .query_row = sequence.first_row,
                         .query_count = sequence.rows(),
                         .first_position = sequence.shared});
  }
  Attended out{like(q, q.sizes()), like(q, {q.size(0), shape.heads})};
  kernel::attention(pass.pool, shape.of_kernel(), q.const_data_ptr<float>(), 0, sequences,
                    out.y.mutable_data_ptr<float>(), 0,
                    out.log_normalizer.mutable_data_ptr<float>());
  return out;
}

RowLogprobs row_logprobs(const PassContext& pass, const at::Tensor& logits,
                         std::span<const std::int32_t> targets, float temperature,
                         bool with_entropy) {
  const profile::Span span("log-probs of logits");
  CHECK(static_cast<std::int64_t>(targets.size()) == logits.size(0));
  if (!pass.by_kernels(logits)) {
    const at::Tensor scaled = logits / temperature;
    RowLogprobs out;
    out.log_normalizer = at::logsumexp(scaled, 1);
    const at::Tensor columns =
        to_device<std::int32_t>(targets, at::kInt, logits.device()).to(at::kLong).unsqueeze(1);
    out.logprob = scaled.gather(1, columns).squeeze(1) - out.log_normalizer;
    if (with_entropy) out.entropy = out.log_normalizer - at::softmax(scaled, 1).mul_(scaled).sum(1);
    return out;
  }
  const std::int64_t rows = logits.size(0);
  RowLogprobs out{like(logits, {rows}), like(logits, {rows}),
                  with_entropy ? like(logits, {rows}) : at::Tensor()};
  const kernel::LogSoftmaxOutputs outputs{
      .logprob = out.logprob.mutable_data_ptr<float>(),
      .log_normalizer = out.log_normalizer.mutable_data_ptr<float>(),
      .entropy = with_entropy ? out.entropy.mutable_data_ptr<float>() : nullptr};
  kernel::log_softmax_gather(pass.pool, logits.const_data_ptr<float>(), rows, logits.size(1), 0,
                             temperature, targets.data(), outputs);
  return out;
}

}  // namespace rl::forward
