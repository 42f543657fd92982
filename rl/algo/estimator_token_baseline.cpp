#include "rl/algo/estimator_token_baseline.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <vector>

#include "rl/algo/estimator_list.h"
#include "rl/algo/token_estimator.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr double kWeightEpsilon = 1e-8;  // added to sums of weights

// The row of the longest of these responses, and the column from which on it has no other next to
// it. There is no row where two are as long.
struct Tail {
  std::int64_t row = -1;
  std::int64_t begin = 0;
};

Tail tail_of(const std::vector<std::int64_t>& members, const at::Tensor& lengths_B) {
  const float* lengths = lengths_B.const_data_ptr<float>();
  Tail tail{.row = members.front(), .begin = 0};
  for (const std::int64_t row : members) {
    if (lengths[row] > lengths[tail.row]) tail.row = row;
  }
  for (const std::int64_t row : members) {
    if (row != tail.row) tail.begin = std::max(tail.begin, static_cast<std::int64_t>(lengths[row]));
  }
  if (tail.begin == static_cast<std::int64_t>(lengths[tail.row])) tail.row = -1;
  return tail;
}

}  // namespace

Advantages optimal_token_baseline(const at::Tensor& rewards_BT, const at::Tensor& logprobs_BT,
                                  const at::Tensor& squares_BT, const at::Tensor& mask_BT,
                                  std::span<const std::int64_t> groups) {
  CHECK(rewards_BT.sizes() == mask_BT.sizes() && logprobs_BT.sizes() == mask_BT.sizes() &&
        squares_BT.sizes() == mask_BT.sizes());
  CHECK(static_cast<std::int64_t>(groups.size()) == mask_BT.size(0));
  c10::AutoGradMode off(false);
  const at::Tensor returns_BT = (rewards_BT * mask_BT).flip({1}).cumsum(1).flip({1});
  const at::Tensor weights_BT =
      ((1.0 - logprobs_BT.exp() * 2.0 + squares_BT) * mask_BT).cumsum(1) * mask_BT;
  const at::Tensor lengths_B = mask_BT.sum(1).contiguous();
  const at::Tensor baselines_BT = at::zeros_like(returns_BT);
  std::map<std::int64_t, std::vector<std::int64_t>> members;
  for (std::size_t i = 0; i < groups.size(); ++i)
    members[groups[i]].push_back(static_cast<std::int64_t>(i));
  for (const auto& [group, rows] : members) {
    if (rows.size() < 2) continue;
    const at::Tensor index = at::from_blob(const_cast<std::int64_t*>(rows.data()),
                                           {static_cast<std::int64_t>(rows.size())}, at::kLong);
    const at::Tensor weights = weights_BT.index_select(0, index);
    const at::Tensor baseline_T =
        (returns_BT.index_select(0, index) * weights).sum(0) / (weights.sum(0) + kWeightEpsilon);
    for (const std::int64_t row : rows) baselines_BT.select(0, row).copy_(baseline_T);
    const Tail tail = tail_of(rows, lengths_B);
    if (tail.row >= 0) baselines_BT.select(0, tail.row).slice(0, tail.begin).zero_();
  }
  return {(returns_BT - baselines_BT) * mask_BT, returns_BT};
}

namespace {

class TokenBaseline : public TokenEstimator {
 public:
  TokenBaseline(const char* name, bool compares_places)
      : TokenEstimator({.name = name,
                        .needs_probabilities = true,
                        .compares_places = compares_places,
                        .group_size_min = 2,
                        .remainder_min = 2}) {}

  Advantages advantages(const RewardedTokens& tokens, const GaeOptions& options) const override {
    return optimal_token_baseline(tokens.rewards_BT, tokens.logprobs_BT, tokens.squares_BT,
                                  tokens.mask_BT, tokens.groups);
  }
};

}  // namespace

const AdvantageEstimator& optimal_token_baseline_estimator() {
  static const TokenBaseline estimator("optimal_token_baseline", /*compares_places=*/true);
  return estimator;
}

const AdvantageEstimator& tir_optimal_token_baseline_estimator() {
  static const TokenBaseline estimator("tir_optimal_token_baseline", /*compares_places=*/false);
  return estimator;
}

}  // namespace rl
