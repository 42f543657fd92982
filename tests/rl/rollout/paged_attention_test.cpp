#include "rl/rollout/paged_attention.h"

#include <gtest/gtest.h>

#include <ATen/ops/empty.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "rl/model/tensor_span.h"

namespace rl {
namespace {

constexpr std::int64_t kPagedHeads = 4, kPagedKvHeads = 2, kPagedDim = 4;
constexpr std::int64_t kPagedLayer = 1;

forward::AttentionShape paged_shape() {
  return {.heads = kPagedHeads, .kv_heads = kPagedKvHeads, .head_dim = kPagedDim, .scale = 0.5F};
}

// A sequence with all its rows so far, of width heads * dim and twice kv_heads * dim.
struct PagedSequence {
  std::vector<std::int32_t> blocks;
  std::vector<std::vector<float>> q = {}, k = {}, v = {};
};

std::vector<float> row_of(std::mt19937& random, std::int64_t width) {
  std::normal_distribution<float> values;
  std::vector<float> row;
  while (std::ssize(row) < width) row.push_back(values(random));
  return row;
}

at::Tensor rows_tensor(const std::vector<std::vector<float>>& rows) {
  at::Tensor tensor = at::empty({std::ssize(rows), std::ssize(rows.front())});
  auto to = elements_of(tensor).begin();
  for (const std::vector<float>& row : rows) to = std::copy(row.begin(), row.end(), to);
  return tensor;
}

// What a query sees, number by number.
std::vector<float> attention_of(const PagedSequence& sequence, std::int64_t position,
                                const forward::AttentionShape& shape) {
  std::vector<float> y;
  const std::vector<float>& q = sequence.q[static_cast<std::size_t>(position)];
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    const std::int64_t of_keys = head / (shape.heads / shape.kv_heads);
    const auto at = [&](const std::vector<float>& row, std::int64_t group, std::int64_t i) {
      return double{row[static_cast<std::size_t>(group * shape.head_dim + i)]};
    };
    std::vector<double> weights(static_cast<std::size_t>(position) + 1, 0.0);
    double total = 0;
    for (std::int64_t key = 0; key <= position; ++key) {
      if (shape.window > 0 && key <= position - shape.window) continue;
      double score = 0;
      for (std::int64_t i = 0; i < shape.head_dim; ++i)
        score += at(q, head, i) * at(sequence.k[static_cast<std::size_t>(key)], of_keys, i);
      score *= double{shape.scale};
      if (shape.softcap > 0)
        score = std::tanh(score / double{shape.softcap}) * double{shape.softcap};
      total += weights[static_cast<std::size_t>(key)] = std::exp(score);
    }
    for (std::int64_t i = 0; i < shape.head_dim; ++i) {
      double sum = 0;
      for (std::size_t key = 0; key < weights.size(); ++key)
        sum += weights[key] == 0 ? 0 : weights[key] * at(sequence.v[key], of_keys, i);
      y.push_back(static_cast<float>(sum / total));
    }
  }
  return y;
}

class PagedAttentionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto cache = KvCache::create({.layers = 2, .width = kPagedKvHeads * kPagedDim},
                                 {.bytes_max = 1 << 20, .block_tokens = 16});
    ASSERT_TRUE(cache.ok()) << cache.status().to_string();
    cache_ = std::move(*cache);
    // What other sequences left there.
    at::Tensor rows = cache_->rows();
    for (float& value : elements_of(rows)) value = std::numeric_limits<float>::infinity();
  }

  // A step with that many further tokens of each, compared with what each query sees.
  void step(const std::vector<std::pair<PagedSequence*, std::int64_t>>& parts,
            const forward::AttentionShape& shape = paged_shape()) {
    std::vector<StepSequence> steps;
    std::vector<std::vector<float>> q, k, v;
    const std::vector<std::int32_t> tokens(64, 0);
    for (const auto& [sequence, count] : parts) {
      steps.push_back({.tokens = std::span(tokens).first(static_cast<std::size_t>(count)),
                       .blocks = sequence->blocks,
                       .first_position = std::ssize(sequence->q)});
      for (std::int64_t i = 0; i < count; ++i) {
        q.push_back(sequence->q.emplace_back(row_of(random_, kPagedHeads * kPagedDim)));
        k.push_back(sequence->k.emplace_back(row_of(random_, kPagedKvHeads * kPagedDim)));
        v.push_back(sequence->v.emplace_back(row_of(random_, kPagedKvHeads * kPagedDim)));
      }
    }
    const at::Tensor y =
        PagedAttention(*cache_, steps)
            .attend(kPagedLayer, shape, rows_tensor(q), rows_tensor(k), rows_tensor(v));
    const std::span<const float> got = elements_of(y);
    std::size_t at = 0;
    for (const auto& [sequence, count] : parts) {
      const std::int64_t length = std::ssize(sequence->q);
      for (std::int64_t position = length - count; position < length; ++position) {
        for (const float expected : attention_of(*sequence, position, shape)) {
          ASSERT_LT(at, got.size());
          ASSERT_NEAR(got[at++], expected, 1e-5) << "at position " << position;
        }
      }
    }
    EXPECT_EQ(at, got.size());
  }

  std::mt19937 random_{3};
  std::unique_ptr<KvCache> cache_;
};

TEST_F(PagedAttentionTest, SequencesSeeTheirOwnKeysThroughTheirBlocks) {
  PagedSequence a{.blocks = {2, 7}}, b{.blocks = {5, 1}}, c{.blocks = {0, 4}};
  step({{&a, 3}});
  step({{&b, 20}, {&c, 17}});
  step({{&b, 1}, {&a, 4}, {&c, 1}});  // b and c are alike, and of different lengths
  step({{&c, 1}, {&b, 1}, {&a, 1}});
}

TEST_F(PagedAttentionTest, APromptMayComeInPieces) {
  PagedSequence a{.blocks = {3, 0, 6}}, b{.blocks = {1, 2, 4}};
  step({{&a, 5}, {&b, 5}});
  step({{&a, 30}, {&b, 7}});
  step({{&b, 7}, {&a, 1}});
}

TEST_F(PagedAttentionTest, AWindowHidesWhatIsBeforeIt) {
  forward::AttentionShape shape = paged_shape();
  shape.window = 3;
  PagedSequence a{.blocks = {2, 7}}, b{.blocks = {5}};
  step({{&a, 18}, {&b, 2}}, shape);
  step({{&a, 1}, {&b, 1}}, shape);
}

TEST_F(PagedAttentionTest, CappedScoresAreCapped) {
  forward::AttentionShape shape = paged_shape();
  shape.scale = 4;
  shape.softcap = 2;
  PagedSequence a{.blocks = {2, 7}}, b{.blocks = {5}};
  step({{&a, 18}, {&b, 2}}, shape);
  step({{&a, 1}, {&b, 1}}, shape);
}

// One object for a step, whose layers may have different windows.
TEST_F(PagedAttentionTest, LayersOfAStepHaveTheirOwnWindows) {
  const std::vector<std::int32_t> tokens = {0, 0, 0}, blocks = {1};
  const std::vector<StepSequence> steps = {{.tokens = tokens, .blocks = blocks}};
  PagedSequence rows{.blocks = blocks};
  for (int i = 0; i < 3; ++i) {
    rows.q.push_back(row_of(random_, kPagedHeads * kPagedDim));
    rows.k.push_back(row_of(random_, kPagedKvHeads * kPagedDim));
    rows.v.push_back(row_of(random_, kPagedKvHeads * kPagedDim));
  }
  PagedAttention paged(*cache_, steps);
  for (const std::int64_t layer : {0, 1}) {
    for (const std::int64_t window : {0, 1, 2}) {
      forward::AttentionShape shape = paged_shape();
      shape.window = window;
      const at::Tensor y =
          paged.attend(layer, shape, rows_tensor(rows.q), rows_tensor(rows.k), rows_tensor(rows.v));
      const std::vector<float> expected = attention_of(rows, 2, shape);
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(elements_of(y)[2 * expected.size() + i], expected[i], 1e-5);
    }
  }
}

}  // namespace
}  // namespace rl
