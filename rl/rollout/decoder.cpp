#include "rl/rollout/decoder.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "rl/kernel/attention.h"
#include "rl/model/graph.h"
#include "rl/model/ops.h"
#include "rl/model/parallel.h"
#include "rl/model/transformer.h"
#include "rl/profile/recorder.h"
#include "runtime/core/check.h"

namespace rl {

namespace {

// Without a graph; what the kernels share of their work runs on their own threads.
class Generating {
 public:
  explicit Generating(bool deterministic) {
    if (deterministic) alone_.emplace();
  }

 private:
  c10::AutoGradMode off_{false};
  std::optional<SingleThreaded> alone_;
};

}  // namespace

Decoder::Decoder(const Transformer& model, KvCache& cache, const QuantizedWeights* quantized,
                 bool deterministic)
    : model_(model),
      cache_(cache),
      deterministic_(deterministic && cache.device().is_cpu()),
      options_{.by_aten = !deterministic_, .quantized = quantized} {}

void Decoder::forward(std::span<const StepSequence> sequences) {
  const profile::Span span("engine forward");
  const Generating mode(deterministic_);
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> lengths;
  for (const StepSequence& sequence : sequences) {
    ids.insert(ids.end(), sequence.tokens.begin(), sequence.tokens.end());
    const std::int64_t end =
        sequence.first_position + static_cast<std::int64_t>(sequence.tokens.size());
    for (std::int64_t position = sequence.first_position; position < end; ++position)
      positions.push_back(static_cast<std::int32_t>(position));
    lengths.insert(lengths.end(), sequence.tokens.size(), std::max(sequence.length_max, end));
  }
  const auto rows = std::make_shared<const forward::Rows>(std::move(ids), std::move(positions),
                                                          lengths, model_.rope());
  std::optional<PagedAttention> paged;
  if (!deterministic_) paged.emplace(cache_, sequences);
  hidden_ = model_.graph().hidden_states(
      rows,
      [&](std::int64_t layer, const forward::AttentionShape& shape, const at::Tensor& q,
          const at::Tensor& k, const at::Tensor& v) {
        return paged ? paged->attend(layer, shape, q, k, v)
                     : attend(layer, shape, sequences, q, k, v);
      },
      options_);
}

at::Tensor Decoder::attend(std::int64_t layer, const forward::AttentionShape& shape,
                           std::span<const StepSequence> sequences, const at::Tensor& q,
                           const at::Tensor& k, const at::Tensor& v) {
  const profile::Span span("cached attention");
  store(layer, sequences, k.const_data_ptr<float>(), v.const_data_ptr<float>());
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
  at::Tensor y = at::empty(q.sizes(), q.options());
  kernel::attention(model_.pool(), shape.of_kernel(), q.const_data_ptr<float>(), 0, queries,
                    y.mutable_data_ptr<float>(), 0);
  return y;
}

void Decoder::store(std::int64_t layer, std::span<const StepSequence> sequences, const float* k,
                    const float* v) {
  const std::int64_t width = cache_.token_stride();
  const std::int64_t block_tokens = cache_.block_tokens();
  std::int64_t row = 0;
  for (const StepSequence& sequence : sequences) {
    const std::int64_t end =
        sequence.first_position + static_cast<std::int64_t>(sequence.tokens.size());
    CHECK(static_cast<std::int64_t>(sequence.blocks.size()) * block_tokens >= end);
    for (std::int64_t position = sequence.first_position; position < end; ++position, ++row) {
      const std::int64_t at = sequence.blocks[static_cast<std::size_t>(position / block_tokens)] *
                                  cache_.block_stride() +
                              position % block_tokens * width;
      std::copy_n(k + row * width, width, cache_.keys(layer) + at);
      std::copy_n(v + row * width, width, cache_.values(layer) + at);
    }
  }
}

at::Tensor Decoder::logits(std::span<const std::int64_t> rows) {
  const Generating mode(deterministic_);
  for (const std::int64_t row : rows) CHECK(row >= 0 && row < hidden_.size(0));
  const Graph& graph = model_.graph();
  return graph.logits(graph.last_norm(ops::select_rows(hidden_, rows), options_), options_);
}

}  // namespace rl
