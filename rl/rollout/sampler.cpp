#include "rl/rollout/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "rl/kernel/kernel.h"
#include "rl/rollout/philox.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr float kTemperatureMin = 1e-4F;
constexpr std::size_t kSumChunk = 1024;

struct Candidate {
  float weight;  // exp(z - maximum)
  std::int32_t id;
};

// Falling weight, then rising id: a total order, so that ties are cut the same way everywhere.
bool likelier(const Candidate& a, const Candidate& b) { return a.weight != b.weight ? a.weight > b.weight : a.id < b.id; }

std::int32_t argmax(std::span<const float> values) {
  return static_cast<std::int32_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

// Four interleaved sums: a fixed order that does not wait for each addition.
double sum_of(std::span<const float> values) {
  double sums[4] = {0, 0, 0, 0};
  std::size_t i = 0;
  for (; i + 4 <= values.size(); i += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += double{values[i + lane]};
  }
  for (; i < values.size(); ++i) sums[0] += double{values[i]};
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The id at which the cumulative weight passes `uniform` of the total: whole chunks first, then within one.
std::int32_t draw(std::span<const float> weights, double uniform) {
  std::vector<double> chunks;
  double total = 0;
  for (std::size_t begin = 0; begin < weights.size(); begin += kSumChunk) {
    chunks.push_back(sum_of(weights.subspan(begin, std::min(kSumChunk, weights.size() - begin))));
    total += chunks.back();
  }
  double rest = uniform * total;
  std::size_t chunk = 0;
  while (chunk + 1 < chunks.size() && rest >= chunks[chunk]) rest -= chunks[chunk++];
  std::int32_t last = -1;  // rounding may leave a remainder behind the last weight
  for (std::size_t i = chunk * kSumChunk; i < std::min((chunk + 1) * kSumChunk, weights.size()); ++i) {
    if (weights[i] <= 0.0F) continue;
    last = static_cast<std::int32_t>(i);
    if (rest < double{weights[i]}) return last;
    rest -= double{weights[i]};
  }
  return last >= 0 ? last : argmax(weights);
}

std::int32_t draw(std::span<const Candidate> candidates, double uniform) {
  double total = 0;
  for (const Candidate& candidate : candidates) total += double{candidate.weight};
  double rest = uniform * total;
  for (const Candidate& candidate : candidates) {
    if (rest < double{candidate.weight}) return candidate.id;
    rest -= double{candidate.weight};
  }
  return candidates.front().id;
}

// The candidates that top-k and top-p leave, likeliest first.
std::vector<Candidate> restrict_candidates(std::span<const float> weights, const SamplingParams& params) {
  std::vector<Candidate> candidates;
  candidates.reserve(weights.size());
  // The likeliest weighs 1, and what top-k and top-p leave keeps its proportions, so that min-p may as well come first; but top-p counts all of the probability.
  const float lowest = params.top_p >= 1.0F ? params.min_p : 0.0F;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0.0F && weights[i] >= lowest) candidates.push_back({weights[i], static_cast<std::int32_t>(i)});
  }
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < candidates.size()) {
    std::nth_element(candidates.begin(), candidates.begin() + params.top_k, candidates.end(), likelier);
    candidates.resize(static_cast<std::size_t>(params.top_k));
  }
  if (params.top_p >= 1.0F) {
    std::sort(candidates.begin(), candidates.end(), likelier);
    return candidates;
  }
  // Sort only as far as the nucleus reaches: usually a few dozen of the vocabulary. The total is summed in the order of ids, since
  // nth_element leaves an order of its own.
  double total = 0;
  if (params.top_k > 0) std::sort(candidates.begin(), candidates.end(), likelier);
  for (const Candidate& candidate : candidates) total += double{candidate.weight};
  const double wanted = double{params.top_p} * total;
  double reached = 0;
  std::size_t kept = 0;
  std::size_t sorted = params.top_k > 0 ? candidates.size() : 0;
  while (kept < candidates.size() && (reached < wanted || kept == 0)) {
    if (kept == sorted) {
      sorted = std::min(candidates.size(), std::max<std::size_t>(64, sorted * 4));
      std::partial_sort(candidates.begin() + static_cast<std::ptrdiff_t>(kept), candidates.begin() + static_cast<std::ptrdiff_t>(sorted),
                        candidates.end(), likelier);
    }
    reached += double{candidates[kept++].weight};
  }
  candidates.resize(kept);
  while (candidates.size() > 1 && candidates.back().weight < params.min_p) candidates.pop_back();
  return candidates;
}

// Log-prob of `id` and whether the row is finite enough to choose from.
SampledToken with_logprob(kernel::ThreadPool& alone, const SampleRow& row, float temperature, std::int32_t id) {
  SampledToken token{.id = id};
  const kernel::LogSoftmaxOutputs outputs{.logprob = &token.logprob};
  kernel::log_softmax_gather(alone, row.logits.data(), 1, static_cast<std::int64_t>(row.logits.size()), 0, temperature, &id, outputs);
  if (!std::isfinite(token.logprob)) token = {};
  return token;
}

SampledToken sample_token(kernel::ThreadPool& alone, const SampleRow& row, std::vector<float>& scratch) {
  const SamplingParams& params = *row.params;
  std::span<const float> logits = row.logits;
  const float penalty = params.repetition_penalty;
  const bool changed = !row.forbidden.empty() || penalty != 1.0F;
  if (changed) scratch.assign(logits.begin(), logits.end());
  if (penalty != 1.0F) {
    for (std::int32_t id : row.history) {
      if (id < 0 || static_cast<std::size_t>(id) >= scratch.size()) continue;
      const float logit = logits[static_cast<std::size_t>(id)];  // once, however often it is repeated
      scratch[static_cast<std::size_t>(id)] = logit < 0.0F ? logit * penalty : logit / penalty;
    }
  }
  for (std::int32_t id : row.forbidden) {
    if (id >= 0 && static_cast<std::size_t>(id) < scratch.size()) scratch[static_cast<std::size_t>(id)] = -std::numeric_limits<float>::infinity();
  }
  if (changed) logits = scratch;
  const std::int32_t best = argmax(logits);
  const bool greedy = params.temperature == 0.0F;
  if (greedy || params.top_k == 1) return with_logprob(alone, row, greedy ? 1.0F : params.temperature, best);

  const float maximum = logits[static_cast<std::size_t>(best)];
  const float scale = 1.0F / params.temperature;
  scratch.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) scratch[i] = (logits[i] - maximum) * scale;
  kernel::exp(alone, scratch.data(), static_cast<std::int64_t>(scratch.size()), scratch.data());
  const double uniform = philox_uniform(params.seed, row.sample, row.position);
  const bool restricted = params.top_k > 0 || params.top_p < 1.0F || params.min_p > 0.0F;
  if (!(scratch[static_cast<std::size_t>(best)] > 0.0F)) return {};  // NaN, or nothing but -infinity
  const std::int32_t id = restricted ? draw(restrict_candidates(scratch, params), uniform) : draw(std::span<const float>(scratch), uniform);
  return with_logprob(alone, row, params.temperature, id);
}

}  // namespace

runtime::Status SamplingParams::validate() const {
  const auto bad = [](const std::string& what) { return runtime::invalid_argument("sampling: " + what); };
  if (temperature != 0.0F && !(temperature >= kTemperatureMin && std::isfinite(temperature))) {
    return bad("temperature is " + std::to_string(temperature) + "; 0 (greedy) or at least 0.0001");
  }
  if (!(top_p > 0.0F && top_p <= 1.0F)) return bad("top_p is " + std::to_string(top_p) + "; above 0 and at most 1");
  if (!(min_p >= 0.0F && min_p <= 1.0F)) return bad("min_p is " + std::to_string(min_p) + "; from 0 to 1");
  if (!(repetition_penalty > 0.0F && std::isfinite(repetition_penalty))) return bad("repetition_penalty is " + std::to_string(repetition_penalty) + "; above 0");
  if (top_k < -1) return bad("top_k is " + std::to_string(top_k) + "; a number of tokens, or 0 or -1 for all");
  if (max_new_tokens < 0) return bad("max_new_tokens is " + std::to_string(max_new_tokens) + "; at least 0");
  if (min_new_tokens < 0) return bad("min_new_tokens is " + std::to_string(min_new_tokens) + "; at least 0");
  if (min_new_tokens > max_new_tokens) {
    return bad("min_new_tokens " + std::to_string(min_new_tokens) + " exceeds max_new_tokens " + std::to_string(max_new_tokens));
  }
  return {};
}

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kAborted: return "aborted";
    case FinishReason::kError: break;
  }
  return "error";
}

void sample_tokens(kernel::ThreadPool& pool, std::span<const SampleRow> rows, std::span<SampledToken> tokens) {
  CHECK(rows.size() == tokens.size());
  pool.parallel_for(static_cast<std::int64_t>(rows.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    static thread_local std::vector<float> scratch;
    for (std::int64_t i = begin; i < end; ++i) {
      // The pool is busy with this very loop, so what is called from here runs on this thread alone.
      tokens[static_cast<std::size_t>(i)] = sample_token(pool, rows[static_cast<std::size_t>(i)], scratch);
    }
  });
}

}  // namespace rl
