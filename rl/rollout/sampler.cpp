#include "rl/rollout/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "rl/kernel/kernel.h"
#include "rl/kernel/philox.h"
#include "rl/rollout/logits_processor.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr std::size_t kSumChunk = 1024;

struct Candidate {
  float weight;  // exp(z - maximum)
  std::int32_t id;
};

// Falling weight, then rising id: a total order, so that ties are cut the same way everywhere.
bool likelier(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

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

// The id at which the cumulative weight passes `uniform` of the total: whole chunks first, then
// within one.
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
  for (std::size_t i = chunk * kSumChunk; i < std::min((chunk + 1) * kSumChunk, weights.size());
       ++i) {
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
std::vector<Candidate> restrict_candidates(std::span<const float> weights,
                                           const SamplingParams& params, std::int64_t top_k) {
  std::vector<Candidate> candidates;
  candidates.reserve(weights.size());
  // The likeliest weighs 1, and what top-k and top-p leave keeps its proportions. Hence min-p may
  // as well come first, but not before top-p, which counts all of the probability.
  const float lowest = params.top_p >= 1.0F ? params.min_p : 0.0F;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0.0F && weights[i] >= lowest)
      candidates.push_back({weights[i], static_cast<std::int32_t>(i)});
  }
  if (top_k > 0 && static_cast<std::size_t>(top_k) < candidates.size()) {
    std::nth_element(candidates.begin(), candidates.begin() + top_k, candidates.end(), likelier);
    candidates.resize(static_cast<std::size_t>(top_k));
  }
  if (params.top_p >= 1.0F) {
    std::sort(candidates.begin(), candidates.end(), likelier);
    return candidates;
  }
  // Sort only as far as the nucleus reaches: usually a few dozen of the vocabulary. The total is
  // summed in the order of ids, since nth_element leaves its own order.
  double total = 0;
  if (top_k > 0) std::sort(candidates.begin(), candidates.end(), likelier);
  for (const Candidate& candidate : candidates) total += double{candidate.weight};
  const double wanted = double{params.top_p} * total;
  double reached = 0;
  std::size_t kept = 0;
  std::size_t sorted = top_k > 0 ? candidates.size() : 0;
  while (kept < candidates.size() && (reached < wanted || kept == 0)) {
    if (kept == sorted) {
      sorted = std::min(candidates.size(), std::max<std::size_t>(64, sorted * 4));
      std::partial_sort(candidates.begin() + static_cast<std::ptrdiff_t>(kept),
                        candidates.begin() + static_cast<std::ptrdiff_t>(sorted), candidates.end(),
                        likelier);
    }
    reached += double{candidates[kept++].weight};
  }
  candidates.resize(kept);
  while (candidates.size() > 1 && candidates.back().weight < params.min_p) candidates.pop_back();
  return candidates;
}

float logprob_of(kernel::ThreadPool& alone, std::span<const float> logits, float temperature,
                 std::int32_t id) {
  float logprob = 0;
  const kernel::LogSoftmaxOutputs outputs{.logprob = &logprob};
  kernel::log_softmax_gather(alone, logits.data(), 1, static_cast<std::int64_t>(logits.size()), 0,
                             temperature, &id, outputs);
  return logprob;
}

// Whether the row's token is sampled at first_temperature.
bool is_hot(const SampleRow& row) {
  return row.params->first_temperature > 0.0F && row.generated == 0;
}

struct Scratch {
  std::vector<float> processed;  // logits behind penalties, where there are any
  std::vector<float> weights;
};

// The chosen token with the log-probs that were asked for; none when the row is not finite.
// `candidates` is what top-k and the like left, empty when they left all.
SampledToken with_logprobs(kernel::ThreadPool& alone, const SampleRow& row,
                           std::span<const float> processed, std::span<const Candidate> candidates,
                           std::int32_t id) {
  const SamplingParams& params = *row.params;
  const float temperature = params.temperature == 0.0F ? 1.0F : params.temperature;
  SampledToken token{.id = id, .logprob = logprob_of(alone, row.logits, temperature, id)};
  if (!std::isfinite(token.logprob)) return {};
  token.top = top_scores(alone, row.logits, temperature, params.top_logprobs);
  if (!params.processed_logprobs) return token;
  if (candidates.empty()) {
    const float drawn_at = is_hot(row) ? params.first_temperature : temperature;
    token.processed_logprob = logprob_of(alone, processed, drawn_at, id);
    token.top_processed = top_scores(alone, processed, drawn_at, params.top_logprobs);
    return token;
  }
  double total = 0;
  for (const Candidate& candidate : candidates) total += double{candidate.weight};
  for (const Candidate& candidate : candidates) {
    const auto logprob = static_cast<float>(std::log(double{candidate.weight} / total));
    if (candidate.id == id) token.processed_logprob = logprob;
    if (static_cast<std::int64_t>(token.top_processed.size()) < params.top_logprobs)
      token.top_processed.push_back({.id = candidate.id, .logprob = logprob});
  }
  return token;
}

SampledToken sample_token(kernel::ThreadPool& alone, const SampleRow& row, Scratch& scratch) {
  const SamplingParams& params = *row.params;
  std::span<const float> logits = row.logits;
  const LogitsContext context{.params = &params,
                              .history = row.history,
                              .generated = row.generated,
                              .forbidden = row.forbidden};
  if (context.changes_logits()) {
    process_logits(context, row.logits, scratch.processed);
    logits = scratch.processed;
  }
  const std::int32_t best = argmax(logits);
  if (!std::isfinite(logits[static_cast<std::size_t>(best)]))
    return {};  // NaN, or everything is forbidden
  const bool hot = is_hot(row);
  if (params.temperature == 0.0F && !hot) return with_logprobs(alone, row, logits, {}, best);
  if (params.top_k == 1)
    return with_logprobs(alone, row, logits, std::array{Candidate{.weight = 1.0F, .id = best}},
                         best);

  const float maximum = logits[static_cast<std::size_t>(best)];
  const float scale = 1.0F / (hot ? params.first_temperature : params.temperature);
  std::vector<float>& weights = scratch.weights;
  weights.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) weights[i] = (logits[i] - maximum) * scale;
  kernel::exp(alone, weights.data(), static_cast<std::int64_t>(weights.size()), weights.data());
  const double uniform = philox_uniform(params.seed, row.sample, row.position);
  if (!(weights[static_cast<std::size_t>(best)] > 0.0F))
    return {};  // NaN, or nothing but -infinity
  const std::int64_t top_k = hot && params.top_k <= 0 ? params.first_top_k : params.top_k;
  const bool restricted = top_k > 0 || params.top_p < 1.0F || params.min_p > 0.0F;
  if (!restricted)
    return with_logprobs(alone, row, logits, {}, draw(std::span<const float>(weights), uniform));
  const std::vector<Candidate> candidates = restrict_candidates(weights, params, top_k);
  return with_logprobs(alone, row, logits, candidates, draw(candidates, uniform));
}

}  // namespace

std::vector<std::int32_t> top_ids(std::span<const float> logits, std::int64_t count) {
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto kept =
      static_cast<std::ptrdiff_t>(std::min(static_cast<std::size_t>(count), ids.size()));
  const auto larger = [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)];
    const float y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  std::partial_sort(ids.begin(), ids.begin() + kept, ids.end(), larger);
  ids.resize(static_cast<std::size_t>(kept));
  return ids;
}

std::vector<TokenScore> top_scores(kernel::ThreadPool& pool, std::span<const float> logits,
                                   float temperature, std::int64_t count) {
  std::vector<TokenScore> scores;
  if (count <= 0) return scores;
  for (const std::int32_t id : top_ids(logits, count)) {
    const float logprob = logprob_of(pool, logits, temperature,
                                     id);  // the kernel's own bits, at a pass over the row each
    if (std::isfinite(logprob)) scores.push_back({.id = id, .logprob = logprob});
  }
  return scores;
}

void sample_tokens(kernel::ThreadPool& pool, std::span<const SampleRow> rows,
                   std::span<SampledToken> tokens) {
  CHECK(rows.size() == tokens.size());
  pool.parallel_for(static_cast<std::int64_t>(rows.size()), 1,
                    [&](std::int64_t begin, std::int64_t end) {
                      static thread_local Scratch scratch;
                      for (std::int64_t i = begin; i < end; ++i) {
                        // The pool is busy with this very loop, so what is called from here runs on
                        // this thread alone.
                        tokens[static_cast<std::size_t>(i)] =
                            sample_token(pool, rows[static_cast<std::size_t>(i)], scratch);
                      }
                    });
}

}  // namespace rl
