// From logits to tokens where the logits are: by ATen, with one copy to the host for all rows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "rl/rollout/sampler.h"

namespace rl {

/// Whether sample_by_aten() does all that the row asks for: temperature, top-k, top-p, min-p,
/// greedy. Penalties, biases, what is forbidden, likeliest tokens and processed log-probs are
/// sample_tokens()'s.
bool fits_aten_sampler(const SampleRow& row);

/// As sample_tokens(), with the same draws: row i takes logits[logit_rows[i]] of [N, vocab].
/// SampleRow::logits is not looked at.
std::vector<SampledToken> sample_by_aten(const at::Tensor& logits,
                                         std::span<const std::int64_t> logit_rows,
                                         std::span<const SampleRow> rows);

}  // namespace rl
