// Padded attention on the host, of sequences that no pass has: values and gradients of its formula.
#include "rl/model/padded_attention.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace rl::forward {
namespace {

AttentionShape shape_with(std::int64_t window, float softcap) {
  return {.heads = 4,
          .kv_heads = 2,
          .head_dim = 6,
          .scale = 0.5F,
          .softcap = softcap,
          .window = window};
}

// The queries of the last tokens of one sequence; k and v are of all its tokens.
at::Tensor attended_by_formula(const AttentionShape& shape, const at::Tensor& q,
                               const at::Tensor& k, const at::Tensor& v) {
  const std::int64_t queries = q.size(0), tokens = k.size(0);
  const auto of_heads = [&](const at::Tensor& t, std::int64_t heads) {
    return t.reshape({t.size(0), heads, shape.head_dim})
        .repeat_interleave(shape.heads / heads, 1)
        .transpose(0, 1);
  };
  at::Tensor scores =
      at::matmul(of_heads(q, shape.heads), of_heads(k, shape.kv_heads).transpose(1, 2)) *
      shape.scale;
  if (shape.softcap > 0) scores = at::tanh(scores / shape.softcap) * shape.softcap;
  const at::Tensor at_query = at::arange(tokens - queries, tokens).unsqueeze(1);
  const at::Tensor at_key = at::arange(tokens);
  at::Tensor hidden = at_key > at_query;
  if (shape.window > 0) hidden = hidden.logical_or(at_key <= at_query - shape.window);
  scores = scores.masked_fill(hidden, -std::numeric_limits<float>::infinity());
  return at::matmul(at::softmax(scores, 2), of_heads(v, shape.kv_heads))
      .transpose(0, 1)
      .reshape({queries, shape.heads * shape.head_dim});
}

// Tokens of the batch from their rows.
at::Tensor tokens_of(const RowLayout& rows, const at::Tensor& t) {
  std::vector<at::Tensor> parts;
  for (std::int64_t token = 0; token < rows.tokens(); ++token)
    parts.push_back(t.narrow(0, rows.row(token), 1));
  return at::cat(parts);
}

/// The number of batches that it took.
std::size_t expect_formula(const RowLayout& rows, const AttentionShape& shape,
                           const AttentionLimits& limits = {}) {
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(5);
  const AttentionInputs in{at::randn({rows.rows, shape.heads * shape.head_dim}, random),
                           at::randn({rows.rows, shape.kv_heads * shape.head_dim}, random),
                           at::randn({rows.rows, shape.kv_heads * shape.head_dim}, random)};
  const at::Tensor dy = at::randn(in.q.sizes(), random);
  const PaddedAttention padded(rows, shape, at::kCPU, limits);
  const Attended found = padded.forward(in);
  const AttentionGradients gradients = padded.backward(in, found, dy);

  const at::Tensor q = in.q.clone().set_requires_grad(true);
  const at::Tensor k = tokens_of(rows, in.k).set_requires_grad(true);
  const at::Tensor v = tokens_of(rows, in.v).set_requires_grad(true);
  std::vector<at::Tensor> parts;
  for (const RowSequence& sequence : rows.sequences)
    parts.push_back(attended_by_formula(shape, q.narrow(0, sequence.first_row, sequence.rows()),
                                        k.narrow(0, sequence.first_token, sequence.tokens),
                                        v.narrow(0, sequence.first_token, sequence.tokens)));
  const at::Tensor expected = at::cat(parts);
  (expected * dy).sum().backward();
  EXPECT_TRUE(at::allclose(found.y, expected, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(gradients.dq, q.grad(), 1e-4, 1e-4));
  EXPECT_TRUE(at::allclose(gradients.dk, k.grad(), 1e-4, 1e-4));
  EXPECT_TRUE(at::allclose(gradients.dv, v.grad(), 1e-4, 1e-4));
  return padded.batches();
}

TEST(PaddedAttention, HasTheGradientsOfItsFormula) {
  const std::vector<RowSequence> sequences = {{.first_token = 0, .tokens = 5, .first_row = 0},
                                              {.first_token = 5, .tokens = 40, .first_row = 5},
                                              {.first_token = 45, .tokens = 1, .first_row = 45}};
  const RowLayout rows{.rows = 46, .sequences = sequences};
  const AttentionLimits tight{.queries_max = 8, .score_bytes_max = 4000, .small_bytes_max = 500};
  for (const float softcap : {0.0F, 1.5F}) {
    for (const std::int64_t window : {0, 7}) {
      SCOPED_TRACE(std::to_string(softcap) + ", window " + std::to_string(window));
      const AttentionShape shape = shape_with(window, softcap);
      EXPECT_EQ(expect_formula(rows, shape), 1U);
      EXPECT_GT(expect_formula(rows, shape, tight), 2U);
    }
  }
}

TEST(PaddedAttention, TokensOfASharedBeginningHaveOneRowAndTheirOwnGradients) {
  const std::vector<RowSequence> sequences = {
      {.first_token = 0, .tokens = 20, .first_row = 0},
      {.first_token = 20, .tokens = 15, .first_row = 20, .shared = 10}};
  std::vector<std::int32_t> row_of;
  for (std::int32_t i = 0; i < 20; ++i) row_of.push_back(i);
  for (std::int32_t i = 0; i < 15; ++i) row_of.push_back(i < 10 ? i : 10 + i);
  const RowLayout rows{.rows = 25, .sequences = sequences, .row_of = row_of};
  expect_formula(rows, shape_with(0, 0.0F));
  expect_formula(rows, shape_with(3, 1.5F));
}

TEST(PaddedAttention, ServesItsShapeAlone) {
  const RowSequence sequence{.tokens = 3};
  const AttentionShape shape = shape_with(0, 0.0F);
  const PaddedAttention padded({.rows = 3, .sequences = {&sequence, 1}}, shape, at::kCPU);
  EXPECT_TRUE(padded.serves(shape, at::kCPU));
  EXPECT_FALSE(padded.serves(shape_with(4, 0.0F), at::kCPU));
}

}  // namespace
}  // namespace rl::forward
