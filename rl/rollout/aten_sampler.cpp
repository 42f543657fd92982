#include "rl/rollout/aten_sampler.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

#include "rl/kernel/philox.h"
#include "rl/rollout/logits_processor.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr std::int64_t kAtenSumChunk = 1024;
constexpr std::int64_t kElementsMax = std::int64_t{1}
                                      << 24;  // logits worked on at a time: samples of one prompt
                                              // share a row, of which each takes a copy

enum class Kind : std::uint8_t { kGreedy, kFree, kRestricted };

Kind sampling_kind(const SamplingParams& params) {
  if (params.temperature == 0.0F) return Kind::kGreedy;
  return params.top_k > 0 || params.top_p < 1.0F || params.min_p > 0.0F ? Kind::kRestricted
                                                                        : Kind::kFree;
}

// Rows of one kind, and what was chosen for them.
struct Part {
  std::vector<std::size_t> rows;
  at::Tensor ids, logprobs;  // [rows]
};

template <class T, class Of>
at::Tensor column(std::span<const std::size_t> rows, at::ScalarType type, at::Device device,
                  Of of) {
  std::vector<T> host;
  for (const std::size_t row : rows) host.push_back(of(row));
  return at::from_blob(host.data(), {static_cast<std::int64_t>(host.size()), 1},
                       at::TensorOptions().dtype(type))
      .to(device, type, /*non_blocking=*/false, /*copy=*/true);
}

// Of each row the first place at which the cumulative weight passes `target` [N, 1], not behind the
// last that has any.
at::Tensor pass(const at::Tensor& weights, const at::Tensor& target) {
  const at::Tensor last =
      at::where(weights > 0, at::arange(weights.size(1), weights.options().dtype(at::kLong)), 0)
          .amax(1, /*keepdim=*/true);
  return at::searchsorted(weights.cumsum(1), target, /*out_int32=*/false, /*right=*/true)
      .minimum(last);
}

// sampler.cpp's draw(): whole chunks first, then within one, in the order of ids.
at::Tensor draw_free(const at::Tensor& weights, const at::Tensor& uniform) {
  const std::int64_t vocab = weights.size(1), chunks = (vocab + kAtenSumChunk - 1) / kAtenSumChunk;
  const at::Tensor in_chunks = at::constant_pad_nd(weights, {0, chunks * kAtenSumChunk - vocab})
                                   .view({-1, chunks, kAtenSumChunk});
  const at::Tensor sums = in_chunks.sum(2, /*keepdim=*/false, at::kDouble);
  const at::Tensor target = uniform * sums.sum(1, /*keepdim=*/true);
  const at::Tensor chunk = pass(sums, target);
  const at::Tensor rest = target - (sums.cumsum(1) - sums).gather(1, chunk);
  const at::Tensor inside = in_chunks.gather(1, chunk.unsqueeze(2).expand({-1, 1, kAtenSumChunk}))
                                .squeeze(1)
                                .to(at::kDouble);
  return chunk * kAtenSumChunk + pass(inside, rest);
}

// What sampler.cpp's restrict_candidates() leaves, likeliest first, and a draw from it.
at::Tensor draw_restricted(const at::Tensor& weights, const at::Tensor& top_k,
                           const at::Tensor& top_p, const at::Tensor& min_p,
                           const at::Tensor& uniform) {
  const auto [sorted, ids] = at::sort(weights, /*stable=*/true, /*dim=*/1, /*descending=*/true);
  const at::Tensor rank = at::arange(weights.size(1), ids.options());
  at::Tensor left = at::where(rank < top_k, sorted.to(at::kDouble), 0.0);
  const at::Tensor before = left.cumsum(1) - left;
  left = at::where((top_p >= 1.0)
                       .logical_or(before < top_p * left.sum(1, /*keepdim=*/true))
                       .logical_or(rank == 0),
                   left, 0.0);
  left = at::where((sorted >= min_p).logical_or(rank == 0), left, 0.0);
  return ids.gather(1, pass(left, uniform * left.sum(1, /*keepdim=*/true)));
}

void choose(Part& part, Kind kind, const at::Tensor& logits,
            std::span<const std::int64_t> logit_rows, std::span<const SampleRow> rows) {
  const at::Device device = logits.device();
  const auto floats = [&](float SamplingParams::*value) {
    return column<float>(part.rows, at::kFloat, device,
                         [&](std::size_t row) { return rows[row].params->*value; });
  };
  const at::Tensor taken = column<std::int64_t>(part.rows, at::kLong, device, [&](std::size_t row) {
                             return logit_rows[row];
                           }).squeeze(1);
  at::Tensor scaled = logits.index_select(0, taken);
  if (kind != Kind::kGreedy) scaled.mul_(floats(&SamplingParams::temperature).reciprocal());
  at::Tensor ids;
  if (kind == Kind::kGreedy) {
    ids = scaled.argmax(1, /*keepdim=*/true);
  } else {
    const at::Tensor weights = (scaled - scaled.amax(1, /*keepdim=*/true)).exp_();
    const at::Tensor uniform = column<double>(part.rows, at::kDouble, device, [&](std::size_t row) {
      return philox_uniform(rows[row].params->seed, rows[row].sample, rows[row].position);
    });
    if (kind == Kind::kFree) {
      ids = draw_free(weights, uniform);
    } else {
      const std::int64_t vocab = logits.size(1);
      const at::Tensor top_k =
          column<std::int64_t>(part.rows, at::kLong, device, [&](std::size_t row) {
            return rows[row].params->top_k > 0 ? rows[row].params->top_k : vocab;
          });
      ids = draw_restricted(weights, top_k, floats(&SamplingParams::top_p),
                            floats(&SamplingParams::min_p), uniform);
    }
  }
  ids = ids.clamp(0, logits.size(1) - 1);  // of rows that are not finite, which may say anything
  part.logprobs = scaled.gather(1, ids).squeeze(1) - at::logsumexp(scaled, 1);
  part.ids = at::where(at::isfinite(part.logprobs), ids.squeeze(1), -1);
}

}  // namespace

bool fits_aten_sampler(const SampleRow& row) {
  const LogitsContext context{.params = row.params,
                              .history = row.history,
                              .generated = row.generated,
                              .forbidden = row.forbidden};
  const bool hot = row.params->first_temperature > 0.0F && row.generated == 0;
  return !hot && !context.changes_logits() && row.params->top_logprobs == 0 &&
         !row.params->processed_logprobs;
}

std::vector<SampledToken> sample_by_aten(const at::Tensor& logits,
                                         std::span<const std::int64_t> logit_rows,
                                         std::span<const SampleRow> rows) {
  CHECK(logit_rows.size() == rows.size());
  std::vector<SampledToken> tokens(rows.size());
  const auto together =
      static_cast<std::size_t>(std::max<std::int64_t>(1, kElementsMax / logits.size(1)));
  for (std::size_t begin = 0; begin < rows.size(); begin += together) {
    std::array<Part, 3> parts;
    for (std::size_t row = begin; row < std::min(rows.size(), begin + together); ++row)
      parts[static_cast<std::size_t>(sampling_kind(*rows[row].params))].rows.push_back(row);
    std::vector<at::Tensor> ids, logprobs;
    std::vector<std::size_t> order;
    for (std::size_t kind = 0; kind < parts.size(); ++kind) {
      Part& part = parts[kind];
      if (part.rows.empty()) continue;
      choose(part, static_cast<Kind>(kind), logits, logit_rows, rows);
      ids.push_back(part.ids);
      logprobs.push_back(part.logprobs);
      order.insert(order.end(), part.rows.begin(), part.rows.end());
    }
    // Both in one copy: the bits of a log-prob travel as an integer.
    const at::Tensor chosen =
        at::stack({at::cat(ids).to(at::kInt), at::cat(logprobs).view(at::kInt)}).cpu();
    const std::int32_t* id = chosen.const_data_ptr<std::int32_t>();
    const std::int32_t* logprob = id + order.size();
    for (std::size_t i = 0; i < order.size(); ++i) {
      tokens[order[i]].id = id[i];
      if (id[i] >= 0) tokens[order[i]].logprob = std::bit_cast<float>(logprob[i]);
    }
  }
  return tokens;
}

}  // namespace rl
