#include "rl/worker/covariant_tokens.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "rl/data/random.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Covariances of a worker's tokens of one mini-batch, from `first` on.
struct Tokens {
  std::size_t first = 0;
  std::vector<float> covariances;
};

Result<Tokens> covariances_of(const RolloutBatch& batch, std::span<const float> advantages,
                              const MiniBatch& mini_batch, DataRanks& ranks) {
  Tokens tokens{.first = static_cast<std::size_t>(batch.learned_before(mini_batch.first_sample)),
                .covariances = {}};
  const auto last = static_cast<std::size_t>(batch.learned_before(mini_batch.last_sample));
  std::vector<double> sums(3, 0.0);  // tokens, advantages, log-probs
  for (std::size_t i = tokens.first; i < last; ++i) {
    sums[0] += 1.0;
    sums[1] += advantages[i];
    sums[2] += batch.logprobs[i];
  }
  if (const Status summed = ranks.sum(sums); !summed.ok()) return summed;
  const double count = std::max(1.0, sums[0]);
  for (std::size_t i = tokens.first; i < last; ++i) {
    tokens.covariances.push_back(static_cast<float>((advantages[i] - sums[1] / count) *
                                                    (batch.logprobs[i] - sums[2] / count)));
  }
  return tokens;
}

double share(double ratio, const MiniBatch& mini_batch) {
  return std::max(1.0, std::floor(ratio * static_cast<double>(mini_batch.tokens_total)));
}

// In [0, 1), of what was said up to each token of the mini-batch.
std::vector<double> draws(const RolloutBatch& batch, const MiniBatch& mini_batch) {
  std::vector<double> drawn;
  for (std::int64_t sample = mini_batch.first_sample; sample < mini_batch.last_sample; ++sample) {
    std::uint64_t said = 0;
    const auto hear = [&](std::int32_t id) {
      said = SplitMix(said ^ static_cast<std::uint32_t>(id)).next();
    };
    for (const std::int32_t id :
         batch.prompts.row(batch.prompt_of[static_cast<std::size_t>(sample)]))
      hear(id);
    const std::span<const std::uint8_t> mask = batch.mask_of(sample);
    const auto response = batch.responses.row(sample);
    for (std::size_t i = 0; i < response.size(); ++i) {
      hear(response[i]);
      if (mask.empty() || mask[i] != 0)
        drawn.push_back(static_cast<double>(said >> 11) * 0x1.0p-53);
    }
  }
  return drawn;
}

Status choose_clipped(const RolloutBatch& batch, const MiniBatch& mini_batch, const Tokens& tokens,
                      const CovarianceOptions& options, DataRanks& ranks,
                      std::vector<float>& chosen) {
  const auto candidate = [&](float covariance) {
    return covariance > options.clip_lower && covariance < options.clip_upper;
  };
  std::array candidates{static_cast<double>(
      std::count_if(tokens.covariances.begin(), tokens.covariances.end(), candidate))};
  if (const Status summed = ranks.sum(candidates); !summed.ok()) return summed;
  const double probability = share(options.clip_ratio, mini_batch) / std::max(1.0, candidates[0]);
  const std::vector<double> drawn = draws(batch, mini_batch);
  for (std::size_t i = 0; i < tokens.covariances.size(); ++i) {
    if (candidate(tokens.covariances[i]) && drawn[i] < probability) chosen[tokens.first + i] = 1.0F;
  }
  return {};
}

Status choose_largest(const MiniBatch& mini_batch, const Tokens& tokens,
                      const CovarianceOptions& options, DataRanks& ranks,
                      std::vector<float>& chosen) {
  const auto count = static_cast<std::size_t>(share(options.kl_ratio, mini_batch));
  std::vector<float> mine(count, std::numeric_limits<float>::lowest());
  std::partial_sort_copy(tokens.covariances.begin(), tokens.covariances.end(), mine.begin(),
                         mine.end(), std::greater<>());
  Result<std::vector<float>> largest = ranks.gather(mine);
  if (!largest.ok()) return largest.status();
  std::nth_element(largest->begin(), largest->begin() + static_cast<std::ptrdiff_t>(count) - 1,
                   largest->end(), std::greater<>());
  const float threshold = (*largest)[count - 1];
  for (std::size_t i = 0; i < tokens.covariances.size(); ++i) {
    // Where nothing varies all are equal, and none is to be held.
    if (tokens.covariances[i] >= threshold && tokens.covariances[i] > 0.0F)
      chosen[tokens.first + i] = 1.0F;
  }
  return {};
}

}  // namespace

Result<std::vector<float>> covariant_tokens(CovarianceChoice choice, const RolloutBatch& batch,
                                            std::span<const float> advantages,
                                            std::span<const MiniBatch> mini_batches,
                                            const CovarianceOptions& options, DataRanks& ranks) {
  CHECK(advantages.size() == batch.logprobs.size());
  std::vector<float> chosen(advantages.size(), 0.0F);
  for (const MiniBatch& mini_batch : mini_batches) {
    const Result<Tokens> tokens = covariances_of(batch, advantages, mini_batch, ranks);
    if (!tokens.ok()) return tokens.status();
    const Status status = choice == CovarianceChoice::kClip
                              ? choose_clipped(batch, mini_batch, *tokens, options, ranks, chosen)
                              : choose_largest(mini_batch, *tokens, options, ranks, chosen);
    if (!status.ok()) return status;
  }
  return chosen;
}

}  // namespace rl
