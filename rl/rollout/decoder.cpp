#include "rl/rollout/decoder.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "rl/kernel/kernel.h"
#include "rl/model/rope.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

// Grows only: a vector that shrank and grew again would be filled with zeros each time.
float* at_least(std::vector<float>& buffer, std::int64_t count) {
  if (buffer.size() < static_cast<std::size_t>(count)) buffer.resize(static_cast<std::size_t>(count));
  return buffer.data();
}

}  // namespace

void Decoder::forward(const DecoderWeights& weights, std::span<const StepSequence> sequences) {
  const DecoderShape& shape = weights.shape;
  ids_.clear();
  positions_.clear();
  for (const StepSequence& sequence : sequences) {
    ids_.insert(ids_.end(), sequence.tokens.begin(), sequence.tokens.end());
    for (std::size_t i = 0; i < sequence.tokens.size(); ++i) {
      positions_.push_back(static_cast<std::int32_t>(sequence.first_position + static_cast<std::int64_t>(i)));
    }
  }
  rows_ = static_cast<std::int64_t>(ids_.size());
  if (rows_ == 0) return;

  float* hidden = at_least(hidden_, rows_ * shape.hidden);
  float* normed = at_least(normed_, rows_ * shape.hidden);
  float* delta = at_least(delta_, rows_ * shape.hidden);
  float* gate = at_least(gate_, rows_ * shape.intermediate);
  float* up = at_least(up_, rows_ * shape.intermediate);
  kernel::gather_rows(pool_, weights.embedding, shape.hidden, ids_.data(), rows_, hidden);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const DecoderLayerWeights& w = weights.layers[static_cast<std::size_t>(layer)];
    kernel::rms_norm(pool_, hidden, rows_, shape.hidden, w.attention_norm, shape.norm_eps, normed);
    attend(weights, layer, sequences);
    kernel::linear(pool_, attended_.data(), rows_, shape.query_size(), w.o, w.o_bias, shape.hidden, delta);
    kernel::add(pool_, hidden, delta, rows_ * shape.hidden, hidden);

    kernel::rms_norm(pool_, hidden, rows_, shape.hidden, w.mlp_norm, shape.norm_eps, normed);
    const std::array<kernel::LinearOutput, 2> gate_up{{{.weight = w.gate, .out = shape.intermediate, .y = gate},
                                                       {.weight = w.up, .out = shape.intermediate, .y = up}}};
    kernel::linear(pool_, normed, rows_, shape.hidden, 0, gate_up);
    kernel::silu_mul(pool_, gate, up, rows_ * shape.intermediate, gate);
    kernel::linear(pool_, gate, rows_, shape.intermediate, w.down, nullptr, shape.hidden, delta);
    kernel::add(pool_, hidden, delta, rows_ * shape.hidden, hidden);
  }
}

// normed_ -> q, k, v -> rotated, stored -> attended_.
void Decoder::attend(const DecoderWeights& weights, std::int64_t layer, std::span<const StepSequence> sequences) {
  const DecoderShape& shape = weights.shape;
  const DecoderLayerWeights& w = weights.layers[static_cast<std::size_t>(layer)];
  float* q = at_least(q_, rows_ * shape.query_size());
  float* k = at_least(k_, rows_ * shape.kv_size());
  float* v = at_least(v_, rows_ * shape.kv_size());
  float* attended = at_least(attended_, rows_ * shape.query_size());
  const std::array<kernel::LinearOutput, 3> qkv{{{.weight = w.q, .bias = w.q_bias, .out = shape.query_size(), .y = q},
                                                 {.weight = w.k, .bias = w.k_bias, .out = shape.kv_size(), .y = k},
                                                 {.weight = w.v, .bias = w.v_bias, .out = shape.kv_size(), .y = v}}};
  kernel::linear(pool_, normed_.data(), rows_, shape.hidden, 0, qkv);

  std::int64_t longest = 0;
  for (const StepSequence& sequence : sequences) {
    longest = std::max(longest, sequence.first_position + static_cast<std::int64_t>(sequence.tokens.size()));
  }
  const std::shared_ptr<const RopeTables> tables = rope_.tables(longest);
  const kernel::RopeShape heads{.heads = shape.heads, .head_dim = shape.head_dim, .half = rope_.half_dim()};
  const kernel::RopeShape kv_heads{.heads = shape.kv_heads, .head_dim = shape.head_dim, .half = rope_.half_dim()};
  kernel::rope(pool_, heads, q, rows_, 0, positions_.data(), tables->cos.data(), tables->sin.data(), q);
  kernel::rope(pool_, kv_heads, k, rows_, 0, positions_.data(), tables->cos.data(), tables->sin.data(), k);
  store_keys_and_values(layer, sequences);

  std::vector<kernel::AttentionSequence> queries;
  queries.reserve(sequences.size());
  std::int64_t row = 0;
  for (const StepSequence& sequence : sequences) {
    const auto count = static_cast<std::int64_t>(sequence.tokens.size());
    queries.push_back({.keys = cache_.keys(layer),
                       .values = cache_.values(layer),
                       .token_stride = cache_.token_stride(),
                       .blocks = sequence.blocks.data(),
                       .block_tokens = cache_.block_tokens(),
                       .block_stride = cache_.block_stride(),
                       .query_row = row,
                       .query_count = count,
                       .first_position = sequence.first_position});
    row += count;
  }
  const kernel::AttentionShape attention{.heads = shape.heads,
                                         .kv_heads = shape.kv_heads,
                                         .head_dim = shape.head_dim,
                                         .scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim))};
  kernel::attention(pool_, attention, q, 0, queries, attended, 0);
}

void Decoder::store_keys_and_values(std::int64_t layer, std::span<const StepSequence> sequences) {
  const std::int64_t width = cache_.token_stride();
  const std::int64_t block_tokens = cache_.block_tokens();
  std::int64_t row = 0;
  for (const StepSequence& sequence : sequences) {
    const std::int64_t end = sequence.first_position + static_cast<std::int64_t>(sequence.tokens.size());
    CHECK(static_cast<std::int64_t>(sequence.blocks.size()) * block_tokens >= end);
    for (std::int64_t position = sequence.first_position; position < end; ++position, ++row) {
      const std::int64_t at = sequence.blocks[static_cast<std::size_t>(position / block_tokens)] * cache_.block_stride() +
                              position % block_tokens * width;
      std::copy_n(k_.data() + row * width, width, cache_.keys(layer) + at);
      std::copy_n(v_.data() + row * width, width, cache_.values(layer) + at);
    }
  }
}

std::span<const float> Decoder::logits(const DecoderWeights& weights, std::span<const std::int64_t> rows) {
  const DecoderShape& shape = weights.shape;
  const auto count = static_cast<std::int64_t>(rows.size());
  float* normed = at_least(normed_, count * shape.hidden);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = rows[static_cast<std::size_t>(i)];
    CHECK(row >= 0 && row < rows_);
    std::copy_n(hidden_.data() + row * shape.hidden, shape.hidden, normed + i * shape.hidden);
  }
  kernel::rms_norm(pool_, normed, count, shape.hidden, weights.final_norm, shape.norm_eps, normed);
  float* logits = at_least(logits_, count * shape.vocab);
  kernel::linear(pool_, normed, count, shape.hidden, weights.lm_head, nullptr, shape.vocab, logits);
  return {logits, static_cast<std::size_t>(count * shape.vocab)};
}

}  // namespace rl
